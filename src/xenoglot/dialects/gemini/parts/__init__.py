"""Parts of a message, decoded and encoded."""
