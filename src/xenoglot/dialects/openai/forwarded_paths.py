"""Moderations, speech, transcriptions, images and decisions: endpoints of OpenAI's that are forwarded as they are.

Sources: `resources/moderations.py`, `resources/audio/`, `resources/images.py` and `resources/decisions.py` of the
official SDK (openai 3.52); https://developers.openai.com/api/docs/api-reference/moderations and `audio`, `images` next
to it. vLLM, LocalAI, speaches and others serve the same paths. `/v1/chat/moderations`, of a conversation, is Mistral's:
https://docs.mistral.ai/api/endpoint/classifiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.forward import ForwardedPath
from xenoglot.dialects.openai.moderation import complete_moderation
from xenoglot.dialects.openai.usage import decode_usage

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.model.response import Usage


def _usage(value: JSON) -> Usage | None:
    """Return the counts of an object `usage`; that of a transcription may have seconds instead of tokens."""
    if isinstance(value, dict) and value.get("type") == "duration":
        return None
    return decode_usage(value, "$.usage", "openai")


MODERATION_MODEL: Final = "omni-moderation-latest"
"""What `model` defaults to, by `types/moderation_create_params.py`."""

FORWARDED_PATHS: Final = (
    ForwardedPath(
        name="moderation",
        path="/v1/moderations",
        default_model=MODERATION_MODEL,
        usage=_usage,
        complete=complete_moderation,
    ),
    ForwardedPath(name="chat_moderation", path="/v1/chat/moderations", usage=_usage),
    ForwardedPath(name="transcription", path="/v1/audio/transcriptions", form=True, usage=_usage),
    ForwardedPath(name="translation", path="/v1/audio/translations", form=True, usage=_usage),
    ForwardedPath(name="speech", path="/v1/audio/speech", usage=_usage),
    ForwardedPath(name="image_generation", path="/v1/images/generations", usage=_usage),
    ForwardedPath(name="image_edit", path="/v1/images/edits", form=True, usage=_usage),
    ForwardedPath(name="image_variation", path="/v1/images/variations", form=True, usage=_usage),
    ForwardedPath(name="decision", path="/v1/decisions", usage=_usage),
)
