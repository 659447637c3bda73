"""What OpenAI's own dialects share: errors, rate limits, lists of models, and how a key is shown. No dialect itself."""
