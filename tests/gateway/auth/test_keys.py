"""Keys: one way in for three headers."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

import pytest

from xenoglot.gateway.auth import keys
from xenoglot.gateway.auth.keys import AMBIGUOUS, EVERYBODY, MISSING, SIGNED, WRONG, Keyring, Principal

if TYPE_CHECKING:
    from xenoglot.gateway.auth.keys import Policy
    from xenoglot.model.failure import Failure

KEY, OTHER = "sk-first-0123456789", "sk-secönd-'\"; DROP"
WIRE = OTHER.encode().decode("latin-1")  # as a server hands it over
THIRD = "sk-à"  # its last byte, A0, is a blank in latin-1
THIRD_WIRE = THIRD.encode().decode("latin-1")
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0"
)
RING = Keyring((KEY, OTHER, THIRD))


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        pytest.param([("authorization", f"Bearer {KEY}")], None, id="bearer"),
        pytest.param([("authorization", f"bearer   {KEY} ")], None, id="bearer-with-blanks"),
        pytest.param([("x-api-key", KEY)], None, id="x-api-key"),
        pytest.param([("api-key", KEY)], None, id="api-key"),
        pytest.param([("x-api-key", WIRE)], None, id="R10-second-key-not-ascii"),
        pytest.param([("x-api-key", f" {THIRD_WIRE}\t")], None, id="R10-key-that-ends-in-a-byte-like-a-blank"),
        pytest.param(
            [("authorization", f"Bearer {THIRD_WIRE}")], None, id="R10-bearer-that-ends-in-a-byte-like-a-blank"
        ),
        pytest.param([("authorization", f"Bearer {KEY}"), ("x-api-key", KEY)], None, id="R17-the-same-twice"),
        pytest.param([("authorization", f"Bearer {KEY}"), ("x-api-key", WIRE)], AMBIGUOUS, id="R17-two-lawful-ones"),
        pytest.param([("x-api-key", KEY), ("x-api-key", "x")], AMBIGUOUS, id="R17-two-of-one-header"),
        pytest.param([("authorization", "Bearer "), ("x-api-key", KEY)], None, id="an-empty-one-is-none"),
        pytest.param([], MISSING, id="nothing"),
        pytest.param([("authorization", "Bearer")], MISSING, id="a-bare-word"),
        pytest.param([("x-api-key", "")], MISSING, id="empty"),
        pytest.param([("authorization", KEY)], WRONG, id="no-scheme"),
        pytest.param([("authorization", f"Basic {KEY}")], WRONG, id="another-scheme"),
        pytest.param([("authorization", SIGNATURE)], SIGNED, id="signed"),
        pytest.param([("authorization", SIGNATURE), ("x-xenoglot-key", KEY)], None, id="signed-with-a-key-beside"),
        pytest.param([("authorization", SIGNATURE), ("x-xenoglot-key", "x")], WRONG, id="signed-with-a-wrong-one"),
        pytest.param([("x-api-key", KEY[:-1])], WRONG, id="R15-last-byte-missing"),
        pytest.param([("x-api-key", KEY[:-1] + "8")], WRONG, id="R15-last-byte-other"),
        pytest.param([("x-api-key", KEY + "\0")], WRONG, id="R10-nul"),
        pytest.param([("x-api-key", KEY * 4000)], WRONG, id="R10-long"),
        pytest.param([("x-api-key", f"{KEY} {WIRE}")], WRONG, id="both-in-one"),
        pytest.param([("cookie", f"x-api-key={KEY}")], MISSING, id="S07-elsewhere"),
    ],
)
def test_who_is_let_in(headers: list[tuple[str, str]], refusal: Failure | None) -> None:
    assert RING.refusal(headers) == refusal


@pytest.mark.parametrize("headers", [[], [("x-api-key", "whatever")], [("x-api-key", "a"), ("api-key", "b")]])
def test_without_keys_everybody_is(headers: list[tuple[str, str]]) -> None:
    assert Keyring().refusal(headers) is None


def test_r18_r11_each_key_shown_costs_one_comparison_whatever_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def counting(left: bytes, right: bytes) -> bool:
        seen.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr(keys, "compare_digest", counting)
    for credential in (KEY, WIRE, "unknown"):
        RING.refusal([("x-api-key", credential)])
    assert seen == [(32, 32)] * 3


def test_s05_r18_no_credential_is_compared_by_equality() -> None:
    tree = ast.parse(inspect.getsource(keys))
    compared = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Compare)}
    assert compared == {
        "client is None",
        "name in GATEWAY_KEY_HEADERS",
        "self._find(digest) is not None",
        "stored is not None",
        "self.stored is None",
        "len({client.owner for client in self.clients if client.uses}) > 1",
        "policy != 'key'",
        "len(shown) != 1",
        "len(shown) == 1",
        "name == 'authorization'",
        "name in KEY_HEADERS",
        "policy != 'open'",
        "refusal is None",
        "scheme.lower() == 'bearer'",
        "self._find(digest) is None",
        "self.stored is not None",
        "stored is None",
    }


def test_s05_the_place_of_a_key_is_this_processs_alone() -> None:
    rings = [Keyring((KEY,)) for _ in range(2)]
    places = [set(ring._by_place) for ring in rings]
    assert places[0].isdisjoint(places[1])
    assert all(keys.digest_of(KEY) not in found for found in places)


def owner(ring: Keyring, *headers: tuple[str, str]) -> str:
    client = ring.admit(headers)
    assert isinstance(client, Principal)
    return client.owner


def test_r15_what_is_kept_belongs_to_the_whole_key() -> None:
    ways = ([("authorization", f"Bearer {KEY}")], [("x-api-key", f" {KEY}")], [("x-api-key", KEY), ("api-key", KEY)])
    owners = {owner(RING, *way) for way in ways}
    near = Keyring((WIRE, KEY[:-1], f"{KEY}0"))
    others = {owner(near, ("x-api-key", key.encode().decode("latin-1"))) for key in (WIRE, KEY[:-1], f"{KEY}0")}
    assert (len(owners), len(others), owners & others) == (1, 3, set())
    assert all(KEY not in one and len(one) == 64 for one in owners)


def test_without_keys_what_is_kept_is_everybodys() -> None:
    assert [owner(Keyring()), owner(Keyring(), ("x-api-key", KEY))] == ["", ""]


ROLES = Keyring(
    clients=[
        (keys.digest_of("user"), Principal(owner="u")),
        (keys.digest_of("admin"), Principal(owner="a", uses=False, admin=True)),
        (keys.digest_of("viewer"), Principal(owner="v", uses=False, viewer=True)),
    ]
)


@pytest.mark.parametrize(
    ("policy", "admitted"),
    [
        pytest.param("open", ["nobody", "user", "admin", "viewer"], id="open"),
        pytest.param("key", ["user"], id="key"),
        pytest.param("admin", ["admin", "viewer"], id="admin"),
        pytest.param("view", ["admin", "viewer"], id="view"),
        pytest.param("manage", ["admin"], id="manage"),
    ],
)
def test_what_each_role_opens(policy: Policy, admitted: list[str]) -> None:
    shown = {name: [] if name == "nobody" else [("x-api-key", name)] for name in ("nobody", "user", "admin", "viewer")}
    assert [name for name, headers in shown.items() if isinstance(ROLES.admit(headers, policy), Principal)] == admitted
    if policy != "open":
        digests = {name: keys.digest_of(name) for name in shown}
        opened = [name for name, digest in digests.items() if isinstance(ROLES.admit_digest(digest, policy), Principal)]
        assert opened == admitted


def test_a_key_is_identified_whatever_its_roles_allow() -> None:
    shown = ([("x-api-key", name)] for name in ("user", "admin", "viewer", "wrong"))
    assert [ROLES.identified(headers).owner for headers in (*shown, [])] == ["u", "a", "v", "", ""]


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        pytest.param(Keyring(), [EVERYBODY] * 3, id="no-keys-at-all"),
        pytest.param(Keyring(("user",)), [Principal, keys.NO_VIEWER, keys.NO_MANAGER], id="keys-of-clients-alone"),
    ],
)
def test_without_administrators_a_clients_key_administers_nothing(ring: Keyring, expected: list[object]) -> None:
    found = [ring.admit([("x-api-key", "user")], policy) for policy in ("admin", "view", "manage")]
    assert [type(one) if want is Principal else one for one, want in zip(found, expected, strict=True)] == expected
