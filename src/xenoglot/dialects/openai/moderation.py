"""Answers of moderation endpoints that differ from OpenAI's: what clients of its API read is added to them.

OpenAI: `types/moderation.py` of the official SDK (openai 3.52), where each result has `flagged` and its categories.
Mistral has no `flagged`, and other names of categories: https://docs.mistral.ai/api/endpoint/classifiers. A client that
reads `flagged` would take every text for harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_NAMES: Final[Mapping[str, str]] = {
    "hate_and_discrimination": "hate",
    "violence_and_threats": "violence",
    "selfharm": "self-harm",
    "dangerous_and_criminal_content": "illicit",
    "criminal": "illicit",
}
"""Category of Mistral -> that of OpenAI with about the same content; `sexual` is called the same."""

_TABLES: Final = ("categories", "category_scores")


def complete_moderation(answer: JSON, losses: Losses) -> JSON | None:
    """Return `answer` with `flagged` in each result and the names of OpenAI in its tables; `None` if it has both."""
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or not isinstance(results, list):
        return None
    made = [_complete(result, f"$.results[{index}]", losses) for index, result in enumerate(results)]
    return None if made == results else {**answer, "results": made}


def _complete(result: JSON, where: str, losses: Losses) -> JSON:
    if not isinstance(result, dict) or isinstance(result.get("flagged"), bool):
        return result
    categories = result.get("categories")
    if not isinstance(categories, dict):
        return result
    losses.emulated(where, "flagged", "the server sends none: set if one of its categories is")
    made: JSONObject = {**result, "flagged": any(value is True for value in categories.values())}
    for table in _TABLES:
        found = result.get(table)
        if isinstance(found, dict) and not _NAMES.keys().isdisjoint(found):
            losses.approximated(where, table, "categories of the server under the names of OpenAI's that are like them")
            made[table] = _named(found)
    return made


def _named(table: JSONObject) -> JSONObject:
    """Return a table with the names of OpenAI added; of two that are like the same one the larger value counts."""
    made = dict(table)
    for theirs, ours in _NAMES.items():
        value, known = table.get(theirs), made.get(ours)
        if isinstance(value, bool | float | int) and (not isinstance(known, bool | float | int) or value > known):
            made[ours] = value
    return made
