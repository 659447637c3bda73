"""Schemas that hold, by name: each keyword at least once."""

from xenoglot.model.json import JSON

NODE: JSON = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["value", "next"],
}

SCHEMAS: dict[str, JSON] = {
    "anything": {},
    "true": True,
    "string": {"type": "string"},
    "string-lengths": {"type": "string", "minLength": 2, "maxLength": 4},
    "string-pattern": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
    "string-pattern-within": {"type": "string", "pattern": "ab|^c", "maxLength": 12},
    "string-pattern-lengths": {"type": "string", "pattern": '^[a-z"\\\\]+$', "minLength": 3, "maxLength": 5},
    "string-unknown-format": {"type": "string", "format": "colour"},
    "enum": {"enum": ["a", 'quote " and \\ and \n', 1, 2.5, None, True, {"x": [1, "é"]}]},
    "enum-of-type": {"type": ["string", "integer"], "enum": ["a", 1, None, 2.5]},
    "const": {"const": {"a": []}},
    "integer": {"type": "integer"},
    "integer-bounds": {"type": "integer", "minimum": -17, "maximum": 120},
    "integer-exclusive": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3},
    "integer-half-open": {"type": "integer", "minimum": 1000},
    "integer-multiple": {"type": "integer", "multipleOf": 5, "minimum": -20, "maximum": 21},
    "number": {"type": "number"},
    "number-unit": {"type": "number", "minimum": 0, "maximum": 1},
    "number-narrow": {"type": "number", "exclusiveMinimum": 0.25, "exclusiveMaximum": 0.26},
    "number-below": {"type": "number", "maximum": -2.5},
    "number-cents": {"type": "number", "multipleOf": 0.01, "minimum": 0},
    "number-steps": {"type": "number", "multipleOf": 0.25, "minimum": -1, "maximum": 1},
    "boolean-or-null": {"type": ["boolean", "null"]},
    "hinted": {"minimum": 3, "maximum": 5},
    "object": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, 'a "key"': {"type": "null"}},
        "required": ["name"],
    },
    "object-all-optional": {"type": "object", "properties": {name: {"type": "boolean"} for name in "abcd"}},
    "object-few": {"type": "object", "properties": dict.fromkeys("abcd", True), "maxProperties": 2},
    "object-some": {"type": "object", "properties": {name: {"const": 1} for name in "abcd"}, "minProperties": 2},
    "object-required-unnamed": {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}},
    "object-empty": {"type": "object", "properties": {}},
    "object-closed": {"type": "object", "additionalProperties": False},
    "object-any": {"type": "object"},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 0, "maxProperties": 3},
    "array": {"type": "array", "items": {"type": "integer"}},
    "array-counts": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    "tuple-open": {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "maxItems": 4},
    "recursive": {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
    "recursive-root": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
    "reference-with-neighbours": {
        "$defs": {"name": {"type": "string", "maxLength": 9}},
        "properties": {"n": {"$ref": "#/$defs/name", "minLength": 2, "description": "a name"}},
        "required": ["n"],
        "type": "object",
    },
    "any-of": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "array", "items": {"type": "null"}}]},
    "any-of-required": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "all-of": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
            {"properties": {"a": {"type": "number", "maximum": 9}, "b": {"type": "null"}}, "required": ["b"]},
        ]
    },
    "all-of-closed": {
        "allOf": [
            {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False},
            {"properties": {"b": {"const": 2}}},
        ]
    },
    "nested": {
        "type": "object",
        "properties": {
            "people": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^\\w+@\\w+$"}}},
            }
        },
        "required": ["people"],
    },
}
