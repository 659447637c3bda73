"""What every store does, whatever it is made of."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.codec.json import slices
from xenoglot.store.records import IDEMPOTENCY, Conversation, Retention, Stored, Window

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.store import Store

DAY = 86_400.0
ENDLESS = Retention(max_age=1e12, max_bytes=2**60)
ANSWER = Stored(
    id="resp_1",
    owner="alice",
    kind="responses",
    created=1000.5,
    status="completed",
    items=[{"role": "user", "content": "hello, nul \u0000 and \U0001f600"}],
    response={"id": "resp_1", "object": "response"},
    output=[{"id": "msg_1", "type": "message"}, {"id": "fc_1", "type": "function_call", "call_id": "call_1"}],
    previous="resp_0",
)
UNDONE = replace(ANSWER, status="in_progress", output=[], background=True, process="p1", lease=1030.0)


def named(name: str, created: float = 0.0, owner: str = "alice") -> Stored:
    return replace(ANSWER, id=name, created=created, owner=owner, output=[])


def item(name: str) -> JSONObject:
    return {"id": name, "type": "message", "role": "user", "content": name}


def ids(answers: list[Stored]) -> list[str]:
    return [answer.id for answer in answers]


class TestAnswers:
    """An answer: put, got, listed, deleted."""

    async def test_what_was_put_is_got(self, store: Store) -> None:
        await store.put(ANSWER)
        assert await store.get("alice", "resp_1") == ANSWER

    async def test_r51_a_large_answer_is_decoded_in_slices_outside_of_the_loop(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A history of 2 MB with 20,000 turns: one call of the JSON library would keep the interpreter's lock."""
        turns = [
            {"role": "user", "content": f"The tide, twice a day: so it goes, and goes ({n})."} for n in range(20_000)
        ]
        large = replace(ANSWER, items=turns)
        seen: list[tuple[bool, bool]] = []
        decode, loop_thread = slices._decode, threading.get_ident()

        def noting(data: bytes) -> JSON:
            seen.append((threading.get_ident() == loop_thread, len(data) > 2 * slices.SLICE_BYTES))
            return decode(data)

        monkeypatch.setattr(slices, "_decode", noting)
        await store.put(large)
        assert await store.get("alice", "resp_1") == large
        assert {*seen} == {(False, False)}

    async def test_another_owner_has_nothing(self, store: Store) -> None:
        await store.put(ANSWER)
        await store.append("alice", "resp_1", 0, [b"frame"])
        seen = (
            await store.get("bob", "resp_1"),
            await store.delete("bob", "resp_1"),
            await store.answers("bob", "responses", Window(limit=9)),
            await store.frames("bob", "resp_1", -1, 9),
            await store.item("bob", "msg_1"),
            await store.settle(replace(ANSWER, owner="bob")),
        )
        assert seen == (None, False, [], [], None, False)
        assert await store.get("alice", "resp_1") == ANSWER

    async def test_the_same_id_of_two_owners_is_two_answers(self, store: Store) -> None:
        mine, theirs = named("resp_1", 1.0), named("resp_1", 2.0, "bob")
        await store.put(mine)
        await store.put(theirs)
        assert await store.delete("alice", "resp_1")
        assert (await store.get("alice", "resp_1"), await store.get("bob", "resp_1")) == (None, theirs)

    async def test_deleted_is_gone_with_all_that_belonged_to_it(self, store: Store) -> None:
        await store.put(ANSWER)
        await store.append("alice", "resp_1", 0, [b"a"])
        assert (await store.delete("alice", "resp_1"), await store.delete("alice", "resp_1")) == (True, False)
        left = (
            await store.get("alice", "resp_1"),
            await store.frames("alice", "resp_1", -1, 9),
            await store.item("alice", "msg_1"),
        )
        assert left == (None, [], None)

    async def test_put_again_replaces(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.put(ANSWER)
        assert await store.get("alice", "resp_1") == ANSWER

    async def test_what_is_amended_is_there_and_what_is_deleted_is_not(self, store: Store) -> None:
        await store.put(ANSWER)
        changed = replace(ANSWER, response={"id": "resp_1", "metadata": {"k": "v"}})
        assert await store.amend(changed)
        assert await store.get("alice", "resp_1") == changed
        await store.delete("alice", "resp_1")
        assert (await store.amend(changed), await store.get("alice", "resp_1")) == (False, None)

    async def test_lists_go_both_ways_page_by_page(self, store: Store) -> None:
        for name, created in (("b", 2.0), ("a", 2.0), ("c", 1.0), ("d", 3.0)):
            await store.put(named(name, created))
        await store.put(replace(named("x", 2.5), kind="chat"))
        pages = [
            await store.answers("alice", "responses", Window(limit=2, order="asc")),
            await store.answers("alice", "responses", Window(limit=2, order="asc", after="a")),
            await store.answers("alice", "responses", Window(limit=3)),
            await store.answers("alice", "responses", Window(limit=3, after="a")),
            await store.answers("alice", "responses", Window(limit=3, after="nobody")),
        ]
        assert [ids(page) for page in pages] == [["c", "a"], ["b", "d"], ["d", "b", "a"], ["c"], []]

    async def test_values_are_never_read_as_sql(self, store: Store) -> None:
        for name in ("'; DROP TABLE answer; --", '"', "$1", "?1", "%", "x" * 65536, "\u00e9\U0001f600"):
            await store.put(named(name, owner=name))
            assert ids(await store.answers(name, "responses", Window(limit=9))) == [name]


class TestWork:
    """An answer in the making, and its frames."""

    async def test_an_answer_is_settled_once(self, store: Store) -> None:
        await store.put(UNDONE)
        done = (
            await store.settle(replace(ANSWER, status="cancelled", output=[])),
            await store.settle(ANSWER),
        )
        assert done == (True, False)
        assert await store.get("alice", "resp_1") == replace(ANSWER, status="cancelled", output=[])

    async def test_the_last_frames_are_kept_with_the_end_or_not_at_all(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.append("alice", "resp_1", 0, [b"zero"])
        assert await store.settle(ANSWER, 1, [b"one", b"two"])
        assert not await store.settle(ANSWER, 3, [b"three"])
        assert await store.frames("alice", "resp_1", -1, 9) == [(0, b"zero"), (1, b"one"), (2, b"two")]

    async def test_of_two_that_settle_at_once_one_does(self, store: Store) -> None:
        await store.put(UNDONE)
        done = await asyncio.gather(
            *(store.settle(replace(ANSWER, status=status)) for status in ("failed", "completed"))
        )
        assert sorted(done) == [False, True]

    async def test_renewing_tells_what_is_still_undone(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.put(replace(UNDONE, id="resp_2"))
        await store.put(replace(UNDONE, id="resp_3", process="p2"))
        await store.settle(replace(ANSWER, id="resp_2"))
        assert await store.renew("p1", 2000.0) == {("alice", "resp_1")}
        assert await store.get("alice", "resp_1") == replace(UNDONE, lease=2000.0)

    async def test_frames_come_back_in_order_from_anywhere(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.append("alice", "resp_1", 0, [b"zero", b"one"])
        await store.append("alice", "resp_1", 2, [b"two"])
        read = [await store.frames("alice", "resp_1", after, 2) for after in (-1, 1, 2)]
        assert read == [[(0, b"zero"), (1, b"one")], [(2, b"two")], []]

    async def test_frames_of_a_forgotten_answer_are_not_kept(self, store: Store) -> None:
        await store.append("alice", "resp_1", 0, [b"zero"])
        await store.put(UNDONE)
        assert await store.frames("alice", "resp_1", -1, 9) == []


class TestItems:
    """Items of answers, found by their ids."""

    async def test_an_item_is_found_in_the_output(self, store: Store) -> None:
        await store.put(ANSWER)
        assert await store.item("alice", "fc_1") == ANSWER.output[1]

    async def test_of_two_of_one_id_the_later_answer_counts(self, store: Store) -> None:
        later = {"id": "msg_1", "type": "message", "later": True}
        await store.put(replace(ANSWER, id="resp_2", created=2000.0, output=[later]))
        await store.put(ANSWER)
        assert await store.item("alice", "msg_1") == later

    async def test_what_settles_can_be_found(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.settle(ANSWER)
        assert await store.item("alice", "msg_1") == ANSWER.output[0]


class TestConversations:
    """Conversations, their items and their locks."""

    made = Conversation(id="conv_1", owner="alice", created=5.0, metadata={"topic": "demo"})

    async def test_what_was_created_is_there(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a"), item("b")])
        assert await store.conversation("alice", "conv_1") == self.made
        assert await store.items("alice", "conv_1", Window(limit=9, order="asc")) == [item("a"), item("b")]

    async def test_another_owner_has_nothing(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a")])
        seen = (
            await store.conversation("bob", "conv_1"),
            await store.update_conversation("bob", "conv_1", {}),
            await store.items("bob", "conv_1", Window(limit=9)),
            await store.add_items("bob", "conv_1", [item("b")], 6.0),
            await store.conversation_item("bob", "conv_1", "a"),
            await store.item("bob", "a"),
            await store.delete_item("bob", "conv_1", "a"),
            await store.lock("bob", "conv_1", "h", 0.0, 9.0),
            await store.delete_conversation("bob", "conv_1"),
        )
        assert seen == (None, None, [], False, None, None, False, False, False)
        assert await store.items("alice", "conv_1", Window(limit=9)) == [item("a")]

    async def test_metadata_is_replaced(self, store: Store) -> None:
        await store.create_conversation(self.made, [])
        updated = replace(self.made, metadata={"topic": "else"})
        assert await store.update_conversation("alice", "conv_1", {"topic": "else"}) == updated
        assert await store.conversation("alice", "conv_1") == updated

    async def test_items_go_both_ways_page_by_page(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a")])
        assert await store.add_items("alice", "conv_1", [item("b"), item("c")], 6.0)
        windows = (
            Window(limit=2, order="asc"),
            Window(limit=2, order="asc", after="b"),
            Window(limit=2),
            Window(limit=2, after="b"),
            Window(limit=2, after="nobody"),
        )
        pages = [await store.items("alice", "conv_1", window) for window in windows]
        names = [[found["id"] for found in page] for page in pages]
        assert names == [["a", "b"], ["c"], ["c", "b"], ["a"], []]

    async def test_pages_end_though_ids_repeat(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a"), item("b"), item("a"), item("c")])
        windows = (Window(limit=2, after="a", order="asc"), Window(limit=2, after="a"))
        pages = [await store.items("alice", "conv_1", window) for window in windows]
        assert pages == [[item("c")], []]

    async def test_one_item_is_got_and_taken_out(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a"), item("b")])
        assert await store.conversation_item("alice", "conv_1", "a") == item("a")
        assert await store.item("alice", "b") == item("b")
        assert (await store.delete_item("alice", "conv_1", "a"), await store.delete_item("alice", "conv_1", "a")) == (
            True,
            False,
        )
        await store.add_items("alice", "conv_1", [item("c")], 6.0)
        assert await store.items("alice", "conv_1", Window(limit=9, order="asc")) == [item("b"), item("c")]

    async def test_items_added_at_once_all_have_places(self, store: Store) -> None:
        await store.create_conversation(self.made, [])
        await asyncio.gather(
            *(store.add_items("alice", "conv_1", [item(f"{n}a"), item(f"{n}b")], 6.0) for n in range(5))
        )
        names = [found["id"] for found in await store.items("alice", "conv_1", Window(limit=99, order="asc"))]
        assert sorted(names) == sorted(f"{n}{letter}" for n in range(5) for letter in "ab")
        assert all(names[index + 1] == names[index][0] + "b" for index in range(0, 10, 2))

    async def test_deleted_is_gone_with_its_items(self, store: Store) -> None:
        await store.create_conversation(self.made, [item("a")])
        assert await store.delete_conversation("alice", "conv_1")
        left = (
            await store.conversation("alice", "conv_1"),
            await store.items("alice", "conv_1", Window(limit=9)),
            await store.item("alice", "a"),
        )
        assert left == (None, [], None)

    async def test_one_holder_at_a_time(self, store: Store) -> None:
        await store.create_conversation(self.made, [])
        taken = [
            await store.lock("alice", "conv_1", "one", 0.0, 10.0),
            await store.lock("alice", "conv_1", "two", 9.0, 19.0),
            await store.lock("alice", "conv_1", "one", 9.0, 20.0),
        ]
        await store.unlock("alice", "conv_1", "two")
        taken.append(await store.lock("alice", "conv_1", "two", 9.0, 19.0))
        await store.unlock("alice", "conv_1", "one")
        taken.append(await store.lock("alice", "conv_1", "two", 9.0, 19.0))
        taken.append(await store.lock("alice", "conv_1", "three", 19.5, 29.0))
        assert taken == [True, False, True, False, True, True]


class TestVault:
    """The vault."""

    async def test_what_was_kept_is_recalled_by_owner_key_and_backend(self, store: Store) -> None:
        await store.put_cached("alice", "call_1", "main", b"old", 1.0)
        await store.put_cached("alice", "call_1", "main", b"sealed", 2.0)
        await store.put_cached("alice", "call_1", "other", b"else", 2.0)
        keys = [("alice", "main"), ("alice", "other"), ("bob", "main")]
        assert [await store.get_cached(owner, "call_1", backend) for owner, backend in keys] == [
            b"sealed",
            b"else",
            None,
        ]

    async def test_whether_anything_is_kept(self, store: Store) -> None:
        assert not await store.has_cached()
        await store.put_cached("alice", "call_1", "main", b"sealed", 1.0)
        assert await store.has_cached()

    @pytest.mark.parametrize("count", [0, 1, 16, 17, 600])
    async def test_several_are_recalled_at_once(self, store: Store, count: int) -> None:
        await store.put_cached("bob", "key 0", "main", b"foreign", 1.0)
        await store.put_cached("alice", "key 0", "other", b"foreign", 1.0)
        for number in range(0, count, 100):
            await store.put_cached("alice", f"key {number}", "main", b"%d" % number, 1.0)
        found = await store.get_cached_of("alice", [f"key {number}" for number in range(count)], "main")
        assert found == {f"key {number}": b"%d" % number for number in range(0, count, 100)}

    async def test_of_those_who_swap_at_once_one_succeeds(self, store: Store) -> None:
        place = ("alice", "key", IDEMPOTENCY)
        marks = [f"mark {number}".encode() for number in range(4)]
        done = await asyncio.gather(*(store.swap(place, None, mark, 1.0) for mark in marks))
        assert sorted(done) == [False, False, False, True]
        assert await store.get_cached(*place) == marks[done.index(True)]

    async def test_what_is_swapped_is_what_is_there(self, store: Store) -> None:
        place, other = ("alice", "key", IDEMPOTENCY), ("bob", "key", IDEMPOTENCY)
        told = [
            await store.swap(place, None, None, 1.0),
            await store.swap(place, b"old", b"new", 1.0),
            await store.swap(place, None, b"old", 1.0),
            await store.swap(place, None, b"new", 1.0),
            await store.swap(other, b"old", b"new", 1.0),
            await store.swap(place, b"old", b"new", 1.0),
            await store.swap(place, b"old", None, 1.0),
        ]
        assert told == [True, False, True, False, False, True, False]
        assert (await store.get_cached(*place), await store.get_cached(*other)) == (b"new", None)
        assert await store.swap(place, b"new", None, 1.0)
        assert await store.get_cached(*place) is None


class TestSweep:
    """What is forgotten by itself."""

    async def test_the_old_goes_in_batches(self, store: Store) -> None:
        for day in range(5):
            await store.put(named(f"resp_{day}", day * DAY))
        await store.create_conversation(Conversation(id="old", owner="alice", created=0.5), [item("a")])
        await store.create_conversation(Conversation(id="used", owner="alice", created=0.5), [])
        await store.add_items("alice", "used", [item("b")], 4 * DAY)
        await store.put_cached("alice", "old", "main", b"1", 0.5)
        limits = Retention(max_age=2 * DAY, max_bytes=2**60)
        gone: list[int] = []
        while not gone or gone[-1]:
            gone.append(await store.sweep(4 * DAY, limits, 2))
        assert gone == [2, 2, 0]
        assert ids(await store.answers("alice", "responses", Window(limit=9))) == ["resp_4", "resp_3", "resp_2"]
        assert await store.conversation("alice", "old") is None
        assert await store.conversation("alice", "used") is not None
        assert await store.get_cached("alice", "old", "main") is None

    async def test_what_makes_requests_idempotent_goes_after_a_day(self, store: Store) -> None:
        for owner, day in (("alice", 0.0), ("bob", 1.0)):
            await store.swap((owner, "key", IDEMPOTENCY), None, b"answer", day * DAY)
            await store.put_cached(owner, "key", "main", b"else", day * DAY)
        assert await store.sweep(1.5 * DAY, ENDLESS, 9) == 1
        places = [(owner, place) for owner in ("alice", "bob") for place in (IDEMPOTENCY, "main")]
        left = [await store.get_cached(owner, "key", place) for owner, place in places]
        assert left == [None, b"else", b"answer", b"else"]

    async def test_of_too_much_the_oldest_goes(self, store: Store) -> None:
        await store.put_cached("alice", "oldest", "main", b"x" * 1000, 1.0)
        await store.put(named("older", 2.0))
        await store.append("alice", "older", 0, [b"x" * 1000])
        await store.put(named("newer", 3.0))
        limits = Retention(max_age=1e12, max_bytes=1900)
        assert [await store.sweep(4.0, limits, 9), await store.sweep(4.0, limits, 9)] == [1, 0]
        limits = replace(limits, max_bytes=1000)
        assert [await store.sweep(4.0, limits, 9), await store.sweep(4.0, limits, 9)] == [1, 0]
        assert ids(await store.answers("alice", "responses", Window(limit=9))) == ["newer"]

    async def test_frames_count_when_their_answer_is_done(self, store: Store) -> None:
        await store.put(UNDONE)
        await store.append("alice", "resp_1", 0, [b"x" * 5000])
        await store.settle(ANSWER)
        assert await store.sweep(4.0, Retention(max_age=1e12, max_bytes=5000), 9) == 1

    async def test_what_is_being_made_or_held_stays(self, store: Store) -> None:
        await store.put(replace(UNDONE, created=1.0, lease=DAY))
        await store.create_conversation(Conversation(id="held", owner="alice", created=1.0), [item("a")])
        assert await store.lock("alice", "held", "one", 1.0, DAY)
        nothing = Retention(max_age=1.0, max_bytes=0)
        gone = [await store.sweep(now, nothing, 9) for now in (DAY - 1, DAY + 1)]
        assert gone == [0, 2]

    async def test_nothing_goes_without_need(self, store: Store) -> None:
        await store.put(ANSWER)
        assert await store.sweep(4.0, ENDLESS, 9) == 0


async def test_ready_opens_and_opens_again(store: Store) -> None:
    await store.ready()
    await store.ready()
    assert await store.get("alice", "resp_1") is None
