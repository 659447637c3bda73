"""What reading and writing of requests agree on: the words for a tool's error, and how long names and ids may be."""

TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: this dialect has no field for it (pitfall-9)."""

ID_LIMIT = 64
"""The longest id of a tool call (OpenAI's 400 says so)."""

NAME_LIMIT = 64
"""The longest name of a function (`FunctionDefinition.name` in the SDK)."""
