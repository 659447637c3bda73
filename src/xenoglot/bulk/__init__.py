"""Many requests from a file: its lines, the journal of what is answered, and who works through them."""
