"""Store of data between requests: responses, conversations, files, batches and cached reasoning."""
