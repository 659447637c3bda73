"""The command `xenoglot init`: creates a configuration file from the answers to a few questions, or from flags."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xenoglot import dialect_registry as dialects
from xenoglot.backends.redaction import for_log
from xenoglot.errors import ConfigurationError, FailureError, XenoglotError, failure_error
from xenoglot.gateway.config.discovery import default_server, trust
from xenoglot.gateway.config.file_permissions import secret_places
from xenoglot.gateway.config.schema import unknown_name
from xenoglot.launching.first_config import EVERY, InitAnswers, UpstreamChoice, render_config, validate_answers
from xenoglot.providers import catalog
from xenoglot.providers.provider import endpoint_of, required_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from xenoglot.gateway.config.load import Config
    from xenoglot.providers.provider import Provider

EMBEDDED: Final = "embedded"
NONE: Final = "none"
MOST_SHOWN: Final = 12
"""Models that are shown of a provider's list."""

LAST_PORT: Final = 65535
_PORTS = frozenset(map(str, range(LAST_PORT + 1)))
_CHOICES = {"yes": "Y/n", "no": "y/N"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InitPrompt:
    """Prompts for settings that no flag sets; uses the default if it must not prompt."""

    def __init__(
        self, ask: Callable[[str], str] | None, say: Callable[[str], None], environ: Mapping[str, str]
    ) -> None:
        self._ask = ask
        self._say = say
        self.environ = environ

    @property
    def silent(self) -> bool:
        """Whether prompts are disabled."""
        return self._ask is None

    def say(self, text: str) -> None:
        """Print a line if prompts are enabled."""
        if self._ask is not None:
            self._say(text)

    def answer(
        self, question: str, usual: str, said: str | None, problem: Callable[[str], str | None], flag: str = ""
    ) -> str:
        """Return the given answer, or prompt for one; an invalid answer is reported, and the question repeated.

        Raises:
            ConfigurationError: the given answer is invalid, or the input has ended.
        """
        if said is not None or self._ask is None:
            value = usual if said is None else said
            if wrong := problem(value):
                raise ConfigurationError(f"{flag}: {wrong}" if flag else wrong)
            return value
        while True:
            try:
                value = self._ask(f"{question} [{_CHOICES.get(usual, usual)}] ").strip() or usual
            except EOFError:
                raise ConfigurationError("no file written: standard input ended before the last answer") from None
            if not (wrong := problem(value)):
                return value
            self._say(for_log(wrong, 400))

    def confirm(self, question: str, *, usual: bool) -> bool:
        """Return whether the answer is yes."""
        return self.answer(question, "yes" if usual else "no", None, _yes_or_no).lower().startswith("y")


def run(options: argparse.Namespace) -> int:
    """Prompt, validate and write; return the exit code.

    Raises:
        ConfigurationError: a flag is invalid, the file exists, or standard input is no terminal.
    """
    ask = None if options.yes else input
    if ask is not None and (sys.stdin is None or not sys.stdin.isatty()):
        raise ConfigurationError(
            "standard input is not a terminal: set options by flags, and use `--yes` for the defaults"
        )
    questions = InitPrompt(ask, _say, os.environ)
    path = Path(options.output)
    _may_write(path, questions, force=options.force)
    answers = answers_of(options, questions)
    config = validate_answers(answers, os.environ, options.output)
    for place in secret_places(config.upstreams):
        raise ConfigurationError(
            f"{place}: looks like a secret, which the file must not contain: name an environment variable instead"
        )
    _write(path, render_config(answers), force=options.force or ask is not None)
    trust(path, os.environ)
    _say(f"Wrote {path}. Start the gateway with `xenoglot serve{'' if _is_found(path) else f' --config {path}'}`.")
    for name in (answers.client_key_env, answers.upstream.key_env if answers.upstream else None):
        if name and not os.environ.get(name):
            _say(f"Set {name} first: it must contain the {'client keys' if name in config.keys.env else 'API key'}.")
    return 0


def _is_found(path: Path) -> bool:
    """Whether the file is the one that is used if none is named."""
    found = default_server(os.environ, Path(), None).config
    return found is not None and Path(found).absolute() == path.absolute()


def answers_of(options: argparse.Namespace, questions: InitPrompt) -> InitAnswers:
    """Return all settings.

    Raises:
        ConfigurationError: see `InitPrompt.answer`.
    """
    who = _upstream(options, questions)
    port = questions.answer("Which port should the gateway listen on?", "8080", options.port, _port, "--port")
    return InitAnswers(
        upstream=who,
        models=() if who is None else _models(who, options, questions),
        embedded=who is None or _embedded(options, questions),
        port=int(port),
        client_key_env=_optional(
            questions.answer(
                f"Which environment variable contains the client keys? (`{NONE}`: clients need no key)",
                NONE,
                options.client_key_env,
                _variable,
                "--client-key-env",
            )
        ),
        store=questions.answer(
            "Where should stored responses and files be kept? (sqlite, sqlite:///PATH, memory, off)",
            "sqlite",
            options.store,
            _store,
            "--store",
        ),
    )


def _upstream(options: argparse.Namespace, questions: InitPrompt) -> UpstreamChoice | None:
    """Return the upstream and its settings."""
    questions.say(f"Providers: {', '.join(catalog.names())}.")
    question = f"Which server should requests go to? (provider name, URL, or `{EMBEDDED}` for the embedded model)"
    name = questions.answer(question, _likely(questions.environ), options.upstream, _upstream_name, "--upstream")
    if name == EMBEDDED:
        return None
    if "://" in name:
        speaks = questions.answer("Which dialect does the server use?", "chat", options.dialect, _dialect, "--dialect")
        variable = questions.answer(
            f"Which environment variable contains its API key? (`{NONE}`: no key)",
            NONE,
            options.key_env,
            _variable,
            "--key-env",
        )
        dialect = dialects.canonical(speaks)
        return UpstreamChoice(name="main", base_url=name, dialect=dialect, key_env=_optional(variable))
    row = catalog.get(name)
    face = endpoint_of(row, options.dialect)
    settings = {one: _setting(row, one, options, questions) for one in required_settings(face)}
    variable = questions.answer(
        f"Which environment variable contains its API key? (`{NONE}`: no key)",
        row.key_env or NONE,
        options.key_env,
        _variable,
        "--key-env",
    )
    said = {one: value for one, value in settings.items() if value}
    return UpstreamChoice(
        name=re.sub(r"[^A-Za-z0-9_-]", "_", row.name),
        provider=row.name,
        dialect=options.dialect,
        settings=said,
        key_env=_optional(variable),
    )


def _setting(row: Provider, name: str, options: argparse.Namespace, questions: InitPrompt) -> str:
    """Return the value of a URL placeholder; empty if the environment or its default sets it at each start."""
    setting = row.settings[name]
    said = dict(one.partition("=")[::2] for one in options.setting).get(name)
    if said is None and (questions.environ.get(setting.env or "") or setting.default):
        return ""
    wanted = f"{row.title} needs {setting.title}"
    return questions.answer(
        f"{wanted}:", "", said, lambda value: None if value.strip() else wanted, f"--setting {name}=..."
    )


def _models(who: UpstreamChoice, options: argparse.Namespace, questions: InitPrompt) -> tuple[str, ...]:
    if options.model:
        return tuple(options.model)
    if who.key_env is None or questions.environ.get(who.key_env):
        _show_models(who, questions)
    question = f"Which models should clients see? (space-separated; `{EVERY}` for all)"
    return tuple(questions.answer(question, EVERY, None, _needed).split())


def _show_models(who: UpstreamChoice, questions: InitPrompt) -> None:
    """List the models of the upstream if prompts are enabled and the server lists them."""
    if questions.silent:
        return
    if questions.answer("List the models of the server?", "yes", None, _yes_or_no).lower().startswith("n"):
        return
    try:
        config = validate_answers(InitAnswers(upstream=who, embedded=False), questions.environ, "init")
        names = asyncio.run(_listed(config))
    except XenoglotError as error:
        told = failure_error(error.failure) if isinstance(error, FailureError) else error
        questions.say(for_log(f"Models cannot be listed: {told}", 400))
        return
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    questions.say(for_log(f"Models: {', '.join(names[:MOST_SHOWN])}{more}.", 2000))


async def _listed(config: Config) -> Sequence[str]:
    from xenoglot.gateway.api.models import list_models  # noqa: PLC0415  as above
    from xenoglot.gateway.process.build import build_gateway  # noqa: PLC0415  only where somebody wants to see the models

    async with build_gateway(config, ready=False) as gateway:
        return [model.id for model in await list_models(gateway.router, gateway.backends)]


def _embedded(options: argparse.Namespace, questions: InitPrompt) -> bool:
    if options.embedded is not None:
        return bool(options.embedded)
    return questions.confirm("Serve the embedded model too?", usual=False)


def _may_write(path: Path, questions: InitPrompt, *, force: bool) -> None:
    if not path.exists() or force:
        return
    if questions.confirm(f"{path} already exists. Overwrite it?", usual=False):
        return
    raise ConfigurationError(
        f"`{path}` already exists: choose another file with `--output`, or overwrite it with `--force`"
    )


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write the file atomically, readable by its owner alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123  a path has no such mode
            file.write(text)
        try:
            if force:
                beside.replace(path)
            else:
                path.hardlink_to(beside)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be written: {os.strerror(error.errno or 0)}") from None


def _likely(environ: Mapping[str, str]) -> str:
    """Return the first provider whose key variable is set, else `embedded`."""
    rows = (catalog.get(name) for name in catalog.names())
    return next((row.name for row in rows if row.key_env and environ.get(row.key_env)), EMBEDDED)


def _optional(value: str) -> str | None:
    return None if value == NONE else value


def _upstream_name(value: str) -> str | None:
    if value == EMBEDDED or value in catalog.names() or value.startswith(("http://", "https://")):
        return None
    try:
        catalog.get(value)
    except ConfigurationError as error:
        return str(error)
    return None


def _dialect(value: str) -> str | None:
    if dialects.canonical(value) in dialects.names():
        return None
    return unknown_name(value, dialects.names(), dialects.other_names())


def _variable(value: str) -> str | None:
    if value == NONE or _VARIABLE.fullmatch(value):
        return None
    return "expected the name of an environment variable; the file never contains a key itself"


def _port(value: str) -> str | None:
    if value in _PORTS:
        return None
    return f"expected a number up to {LAST_PORT}"


def _store(value: str) -> str | None:
    from xenoglot.store.location import location_problem  # noqa: PLC0415  only where it is asked

    if "@" in value:
        return "contains a user or password; put the URL in an environment variable, and set `url_env` to its name"
    return location_problem(value)


def _needed(value: str) -> str | None:
    return None if value.strip() and value.isprintable() else "expected at least one printable character"


def _yes_or_no(value: str) -> str | None:
    return None if value.lower() in ("y", "yes", "n", "no") else "expected yes or no"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  a person is there
