"""A gateway with two keys that takes uploads, and the SDK of OpenAI with each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import config_for, run_gateway
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import BatchSettings, KeySettings

if TYPE_CHECKING:
    from collections.abc import Generator

    import openai

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.gateway.config.load import Config


@pytest.fixture(scope="package")
def two_keys() -> Config:
    """A configuration with the keys of Alice and Bob, and a limit of 20 MB for one file."""
    return replace(
        config_for("scripted", batches=BatchSettings(max_bytes=20_000_000)),
        keys=KeySettings(env=("CLIENTS",)),
        secrets=Secrets({"CLIENTS": "alice bob"}),
    )


@pytest.fixture(scope="package")
def uploading(two_keys: Config) -> Generator[RunningGateway]:
    """The gateway. Tests delete what they upload."""
    with run_gateway({"scripted": Scripted(HELLO)}, two_keys) as gateway:
        yield gateway


@pytest.fixture(scope="package")
def alice(uploading: RunningGateway) -> Generator[openai.OpenAI]:
    """The SDK with one of the keys."""
    with client_of(uploading, "alice") as client:
        yield client


@pytest.fixture(scope="package")
def bob(uploading: RunningGateway) -> Generator[openai.OpenAI]:
    """The SDK with the other."""
    with client_of(uploading, "bob") as client:
        yield client
