"""Links to the page Translate with a text in them. It is in the fragment of the URL, which browsers do not send."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64encode
from typing import Final

from xenoglot.codec.json.json_io import encode_json

TRANSLATE: Final = "/console/translate"


def translation_link(source: str, target: str, text: str) -> str:
    """Return the path of the page Translate with a text in the dialect `source`, to be translated to `target`."""
    return f"{TRANSLATE}#{fragment(source, target, text)}"


def fragment(source: str, target: str, text: str) -> str:
    """Return the fragment that the page Translate reads: JSON, compressed (RFC 1951), in base64url."""
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    state = encode_json({"from": source, "to": target, "text": text, "target": ""})
    return urlsafe_b64encode(squeeze.compress(state) + squeeze.flush()).rstrip(b"=").decode()
