"""What is wrong with a sign-in before anything is fetched: missing libraries, missing options."""

from __future__ import annotations

import sys

import pytest

from xenoglot.backends.remote.sign_in.open_sign_in import SignInRequest, open_sign_in
from xenoglot.backends.remote.sign_in.settings import SignInSettings
from xenoglot.errors import ConfigurationError


def request(auth: str, settings: SignInSettings | None = None, **more: str) -> SignInRequest:
    """Return what is needed for a sign-in of the upstream `up`."""
    chosen = settings or SignInSettings()
    return SignInRequest("up", auth, chosen, base_url="https://models.example", secret=lambda _: "", environ={}, **more)


@pytest.mark.parametrize(
    ("auth", "module", "package", "extra"),
    [
        pytest.param("google", "google.auth", "google_auth", "google", id="google"),
        pytest.param("azure", "azure.identity", "azure_identity", "azure", id="azure"),
        pytest.param("aws", "botocore.session", "botocore", "aws", id="aws"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    auth: str, module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as caught:
        open_sign_in(request(auth))
    assert str(caught.value) == f"{package} is not installed: pip install 'xenoglot[{extra}]'"


@pytest.mark.parametrize(
    ("auth", "more", "problem"),
    [
        pytest.param(
            "aws",
            {},
            "upstreams.up.sign_in: the host models.example names no AWS region and service; set `region` and `service`",
            id="in-a-file",
        ),
        pytest.param(
            "aws",
            {"place": "--setting"},
            "--setting: the host models.example names no AWS region and service; set `region` and `service`",
            id="in-flags",
        ),
        pytest.param(
            "anthropic_identity",
            {"place": "`sign_in`"},
            "`sign_in`.federation_rule: required by `anthropic_identity`: or set the environment variable "
            "ANTHROPIC_FEDERATION_RULE_ID",
            id="in-python",
        ),
    ],
)
def test_a_missing_option_is_named_where_it_is_set(auth: str, more: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_sign_in(request(auth, None, **more))
    assert str(caught.value) == problem


def test_the_clients_own_sign_in_is_none_of_the_gateways() -> None:
    assert open_sign_in(request("client")) is None
