"""What a person sees: a conversation in a terminal, one question, the progress of long work."""
