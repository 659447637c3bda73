"""Code that Google's dialects share: API key header, lists of models, places of files. Not a dialect."""
