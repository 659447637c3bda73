"""Deprecated configuration keys: accepted for one release, with a warning in the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from xenoglot.gateway.config.schema import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.gateway.config.schema import Problems
    from xenoglot.model.json import JSON, JSONObject

UPSTREAM_KEYS = {"facts": "model_overrides", "preserve": "preserve_reasoning"}
"""New names of keys of `[upstreams.NAME]`."""

ENDPOINT_KEYS = {"facts": "model_overrides"}
"""New names of keys of `[[upstreams.NAME.also]]`."""

MODEL_KEYS = {
    "continues": "midstream_failover",
    "hold_back": "buffer",
    "patience_seconds": "retry_deadline_seconds",
    "preserve": "preserve_reasoning",
}
"""New names of keys of `[[models]]`."""

_logger = logging.getLogger("xenoglot.gateway")


def with_new_keys(plain: JSONObject, where: str, problems: Problems) -> JSONObject:
    """Return the data of a configuration file with the new name of each deprecated key.

    Each deprecated key is logged as a warning; `where` names the file. A table with both names is a mistake.
    """
    renamer = _Renamer(where, problems)
    changed = dict(plain)
    upstreams, models = plain.get("upstreams"), plain.get("models")
    if isinstance(upstreams, dict):
        changed["upstreams"] = {name: renamer.upstream(one, join("upstreams", name)) for name, one in upstreams.items()}
    if isinstance(models, list):
        changed["models"] = renamer.rows(models, MODEL_KEYS, "models")
    return changed


class _Renamer:
    """Renames the deprecated keys of one file; values that are no tables stay as they are."""

    def __init__(self, where: str, problems: Problems) -> None:
        self._where = where
        self._problems = problems

    def upstream(self, value: JSON, path: str) -> JSON:
        renamed = self.table(value, UPSTREAM_KEYS, path)
        if isinstance(renamed, dict) and isinstance(also := renamed.get("also"), list):
            return {**renamed, "also": self.rows(also, ENDPOINT_KEYS, join(path, "also"))}
        return renamed

    def rows(self, values: list[JSON], keys: Mapping[str, str], path: str) -> list[JSON]:
        return [self.table(value, keys, f"{path}[{index}]") for index, value in enumerate(values)]

    def table(self, value: JSON, keys: Mapping[str, str], path: str) -> JSON:
        if not isinstance(value, dict) or value.keys().isdisjoint(keys):
            return value
        for old in sorted(value.keys() & keys.keys()):
            if keys[old] in value:
                self._problems.add(join(path, old), f"deprecated name of `{keys[old]}`, which is set too; remove it")
            else:
                _logger.warning("%s: %s: deprecated; rename it to `%s`", self._where, join(path, old), keys[old])
        return {name: item for key, item in value.items() if (name := keys.get(key, key)) == key or name not in value}
