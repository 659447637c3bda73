"""Files that are sent along."""

import os
from base64 import b64encode
from pathlib import Path

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import File, Image, Inline, Text
from xenoglot.terminal.attachments import LARGEST, LONGEST_TEXT, read_attachment

IMAGES = [
    pytest.param(b"\x89PNG\r\n\x1a\n...", "image/png", id="png"),
    pytest.param(b"\xff\xd8\xff\xe0...", "image/jpeg", id="jpeg"),
    pytest.param(b"GIF89a...", "image/gif", id="gif"),
    pytest.param(b"RIFF....WEBPVP8 ...", "image/webp", id="webp"),
]


@pytest.mark.parametrize(("data", "media_type"), IMAGES)
def test_an_image_is_told_by_its_first_bytes(tmp_path: Path, data: bytes, media_type: str) -> None:
    path = tmp_path / "named.txt"
    path.write_bytes(data)
    wanted = Image(source=Inline(data=b64encode(data).decode(), media_type=media_type))
    assert read_attachment(str(path)) == wanted
    assert read_attachment(str(path), image=True) == wanted


def test_a_pdf_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7\n")
    source = Inline(data=b64encode(b"%PDF-1.7\n").decode(), media_type="application/pdf")
    assert read_attachment(str(path)) == File(source=source, name="a.pdf")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"one\ntwo\n", "n.md:\n```\none\ntwo\n```", id="lines"),
        pytest.param(b"no end", "n.md:\n```\nno end\n```", id="without-a-lines-end"),
        pytest.param(b"\xef\xbb\xbfmarked", "n.md:\n```\nmarked\n```", id="byte-order-mark"),
        pytest.param(b"````\nx\n````", "n.md:\n`````\n````\nx\n````\n`````", id="a-fence-inside"),
    ],
)
def test_a_text_is_quoted(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "n.md").write_bytes(data)
    assert read_attachment(str(tmp_path / "n.md")) == Text(text=text)


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    (tmp_path / "long").write_bytes(b"x" * (LONGEST_TEXT + 1))
    os.truncate(os.open(tmp_path / "huge", os.O_CREAT | os.O_WRONLY), LARGEST + 1)
    os.mkfifo(tmp_path / "pipe")
    for name, problem in {
        "binary": "neither text",
        "latin": "neither text",
        "long": "a text may have 1 MB",
        "huge": "more than 20 MB",
        "pipe": "no regular file",
        ".": "no regular file|Is a directory",
        "gone": "No such file",
        "nul\0": "cannot be one",
        "esc\x1b[31m": r"esc�\[31m. cannot be read",
    }.items():
        with pytest.raises(ConfigurationError, match=problem):
            read_attachment(str(tmp_path / name))
    with pytest.raises(ConfigurationError, match="no image"):
        read_attachment(str(tmp_path / "long"), image=True)
