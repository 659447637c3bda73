"""What every store does with files, whatever it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tests.store.test_conformance import ENDLESS
from xenoglot.codec.features.batch import StoredFile
from xenoglot.store.files import UNFINISHED
from xenoglot.store.records import Retention, Window

if TYPE_CHECKING:
    import pytest

    from xenoglot.store.store import Store

FILE = StoredFile(id="file-1", owner="alice", created=100.0, name="a.jsonl", purpose="batch", size=6)


async def keep(store: Store, file: StoredFile, *pieces: bytes) -> None:
    await store.files.begin(file)
    for number, piece in enumerate(pieces):
        assert await store.files.add(file.owner, file.id, number, piece)
    assert await store.files.finish(file)


async def names(store: Store, window: Window, purpose: str | None = None) -> list[str]:
    return [file.id for file in await store.files.list_page("alice", window, 200.0, purpose)]


async def test_one_is_there_when_all_of_it_is(store: Store) -> None:
    await store.files.begin(FILE)
    await store.files.add("alice", "file-1", 0, b"abc")
    assert await store.files.get("alice", "file-1", 200.0) is None
    assert await names(store, Window(limit=9)) == []
    await store.files.add("alice", "file-1", 1, b"\x00ef")
    await store.files.finish(FILE)
    assert await store.files.get("alice", "file-1", 200.0) == FILE
    first = await store.files.pieces("alice", "file-1", -1, 1)
    assert (first, await store.files.pieces("alice", "file-1", 0, 9)) == ([(0, b"abc")], [(1, b"\x00ef")])
    assert not await store.files.add("alice", "file-1", 2, b"more")


async def test_another_owner_has_nothing(store: Store) -> None:
    await keep(store, FILE, b"secret")
    seen = (
        await store.files.get("bob", "file-1", 200.0),
        await store.files.list_page("bob", Window(limit=9), 200.0),
        await store.files.pieces("bob", "file-1", -1, 9),
        await store.files.delete("bob", "file-1"),
    )
    assert seen == (None, [], [], False)
    assert await store.files.pieces("alice", "file-1", -1, 9) == [(0, b"secret")]


async def test_they_are_listed_in_pages(store: Store) -> None:
    for number, purpose in enumerate(("batch", "vision", "batch", "batch")):
        await keep(store, replace(FILE, id=f"file-{number}", created=float(number // 2), purpose=purpose))
    assert await names(store, Window(limit=2)) == ["file-3", "file-2"]
    assert await names(store, Window(limit=9, after="file-2")) == ["file-1", "file-0"]
    assert await names(store, Window(limit=9, after="file-1", order="asc")) == ["file-2", "file-3"]
    assert await names(store, Window(limit=9, after="file-3"), "batch") == ["file-2", "file-0"]
    assert await names(store, Window(limit=9, after="file-9")) == []


async def test_one_that_has_expired_is_not_there_and_goes(store: Store) -> None:
    await keep(store, replace(FILE, expires=150.0), b"abcdef")
    assert await store.files.get("alice", "file-1", 149.0) is not None
    assert await store.files.get("alice", "file-1", 150.0) is None
    assert [await store.sweep(now, ENDLESS, 9) for now in (149.0, 151.0)] == [0, 1]
    assert await store.files.pieces("alice", "file-1", -1, 9) == []


async def test_one_that_never_became_whole_goes_in_the_end(store: Store) -> None:
    await store.files.begin(FILE)
    await store.files.add("alice", "file-1", 0, b"abc")
    full = Retention(max_age=1.0, max_bytes=1)
    assert [await store.sweep(now, full, 9) for now in (200.0, 101.0 + UNFINISHED)] == [0, 1]
    assert not await store.files.finish(FILE)


async def test_the_oldest_goes_when_there_is_too_much(store: Store) -> None:
    for number in range(3):
        await keep(store, replace(FILE, id=f"file-{number}", created=float(number)), b"x" * 10_000)
    assert await store.sweep(200.0, Retention(max_age=1e6, max_bytes=25_000), 9) == 1
    assert await names(store, Window(limit=9)) == ["file-2", "file-1"]


async def test_one_is_composed_of_unfinished_ones(store: Store) -> None:
    parts = [replace(FILE, id=f"part-{number}", purpose="upload-1", size=0) for number in range(3)]
    for part in parts:
        await store.files.begin(part)
    for number, (part, piece) in enumerate([(parts[0], b"abc"), (parts[1], b"de"), (parts[0], b"\x00f")]):
        assert await store.files.add("alice", part.id, number // 2, piece)
    assert await store.files.unfinished("part-0", 200.0) == (parts[0], 2, 5)
    assert await store.files.unfinished("part-2", 200.0) == (parts[2], 0, 0)
    assert await store.files.unfinished("part-0", 100.0 + UNFINISHED + 1) is None
    whole = replace(FILE, size=7)
    assert not await store.files.compose(whole, ["part-1", "part-9"])
    assert not await store.files.compose(replace(whole, owner="bob"), ["part-1"])
    assert await store.files.compose(whole, ["part-1", "part-0"])
    assert await store.files.get("alice", "file-1", 200.0) == whole
    assert [piece for _, piece in await store.files.pieces("alice", "file-1", -1, 9)] == [b"de", b"abc", b"\x00f"]
    assert await store.files.unfinished("part-0", 200.0) is None
    assert await store.files.unfinished("file-1", 200.0) is None
    await store.files.discard("bob", "upload-1")
    assert await store.files.unfinished("part-2", 200.0) is not None
    await store.files.discard("alice", "upload-1")
    assert await store.files.unfinished("part-2", 200.0) is None
    assert await store.protected_bytes("alice") == 0


async def test_a_piece_is_stored_once(store: Store) -> None:
    """Of two requests that write to one upload, the second is refused, and its bytes are not counted."""
    await store.files.begin(FILE)
    before = await store.protected_bytes("alice")
    assert await store.files.add("alice", "file-1", 0, b"abc")
    assert not await store.files.add("alice", "file-1", 0, b"another")
    assert await store.files.unfinished("file-1", 200.0) == (FILE, 1, 3)
    assert await store.protected_bytes("alice") == before + 3
    assert await store.files.pieces("alice", "file-1", -1, 9) == [(0, b"abc")]


async def test_parts_that_grew_meanwhile_are_not_joined(store: Store) -> None:
    await store.files.begin(replace(FILE, id="part-1"))
    await store.files.add("alice", "part-1", 0, b"abc")
    assert not await store.files.compose(replace(FILE, size=2), ["part-1"])
    assert await store.files.unfinished("part-1", 200.0) == (replace(FILE, id="part-1"), 1, 3)
    assert await store.files.get("alice", "file-1", 200.0) is None
    assert await store.files.compose(replace(FILE, size=3), ["part-1"])


async def test_an_owner_has_a_limited_number_of_incomplete_files(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sizes are added up for each piece that arrives."""
    monkeypatch.setattr("xenoglot.store.files.MOST_UNFINISHED", 2)
    begun = [await store.files.begin(replace(FILE, id=f"file-{number}")) for number in range(3)]
    assert begun == [True, True, False]
    assert await store.files.begin(replace(FILE, owner="bob"))
    assert await store.files.finish(replace(FILE, id="file-0"))
    assert await store.files.begin(replace(FILE, id="file-2"))
