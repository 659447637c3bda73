"""Python functions as tools: signature, docstring, schema."""
