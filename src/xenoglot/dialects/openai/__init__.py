"""Code that OpenAI's dialects share: errors, rate limits, lists of models, API key header. Not a dialect."""
