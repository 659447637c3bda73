"""One call: options, upstream, attempts and retries."""
