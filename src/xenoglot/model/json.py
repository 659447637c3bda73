"""Type aliases of JSON values: the only place that uses `Any`."""

from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""`None`, `bool`, `int`, `float`, `str`, a list of these or a dict of these by `str`."""

JSONObject: TypeAlias = dict[str, JSON]
"""One decoded JSON object, its keys in the order of the wire."""
