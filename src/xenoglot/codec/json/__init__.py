"""JSON helpers: slices, duplicate keys, nested unknown fields, growing objects."""
