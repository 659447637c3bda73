"""Constants shared by the request codecs: the prefix of tool errors, and the longest names and ids."""

TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: this dialect has no field for it (pitfall-9)."""

ID_LIMIT = 64
"""The longest id of a tool call (OpenAI's 400 says so)."""

NAME_LIMIT = 64
"""The longest name of a function (`FunctionDefinition.name` in the SDK)."""
