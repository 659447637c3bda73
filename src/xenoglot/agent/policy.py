"""Policy file of the user: denies tools, requires approval or allows them, and sets limits.

It restricts the flags, and removes questions. It is read only from the path that a flag names.
"""

from __future__ import annotations

import os
import re
import tomllib
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from xenoglot.agent.hooks import Hook
from xenoglot.agent.sandbox.environment import is_secret, secrets
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.schema import Problems, join, read, shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from xenoglot.agent.permissions import Permissions
    from xenoglot.tools.tool import LocalTool

EDITING: Final = ("edit_file", "write_file")
RUNNING: Final = ("run",)
BUILT_IN: Final = ("list_dir", "read_file", "find", "search", "plan", *EDITING, *RUNNING)
"""The tools that an agent may have by itself."""

OUTSIDE: Final = "mcp_"
"""Prefix of the names of MCP tools in patterns: `mcp_*` is all of them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(
    r"(?:^|\W)(?:(?:sk|pk|rk)[-_]|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|hf_|AKIA|AIza|eyJ)[\w.-]{12}|-----BEGIN "
)
"""Prefixes of API keys, for the kinds that have one."""

Amount = Annotated[float, Meta(ge=0, le=1e15)]
Count = Annotated[int, Meta(ge=1)]


class PolicyLimits(Struct, frozen=True, kw_only=True):
    """Limits; `None` leaves the limit to the flags. `seconds` count working time."""

    rounds: Count | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    calls: Count | None = None
    seconds: Amount | None = None


_FLAGS: Final = {
    "rounds": "max_rounds",
    "tokens": "max_tokens_total",
    "cost": "max_cost",
    "calls": "max_calls",
    "seconds": "max_seconds",
}


class Policy(Struct, frozen=True, kw_only=True):
    """A parsed policy file. `deny` has priority over `ask`, and `ask` over `allow`; each holds patterns of tool names.

    `message` is sent to the model, `env` are variables for commands, `hooks` run before and after prompts and calls.
    """

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    message: str | None = None
    env: dict[str, Any] = {}
    hooks: tuple[Hook, ...] = ()
    limits: PolicyLimits = PolicyLimits()

    @property
    def secrets(self) -> list[str]:
        """The values of secret variables, which are redacted from output."""
        return list(secrets(self.env))

    def narrowed(self, options: argparse.Namespace) -> argparse.Namespace:
        """Return the flags with the stricter of each limit, and with the message among the instructions."""
        said = vars(options).copy()
        for name, flag in _FLAGS.items():
            limits = [limit for limit in (said[flag], getattr(self.limits, name)) if limit is not None]
            said[flag] = min(limits, default=None)
        said["system"] = "\n\n".join(filter(None, (self.message, said["system"]))) or None
        return type(options)(**said)

    def widened(self, permissions: Permissions) -> Permissions:
        """Return permissions under which the tools that need no question are made, to be put right by `applied`."""
        write, shell = (any(_matched(self.allow, name) for name in names) for names in (EDITING, RUNNING))
        return replace(
            permissions,
            write="ask" if write and permissions.write == "no" else permissions.write,
            shell="ask" if shell and permissions.shell == "no" else permissions.shell,
        )

    def applied(self, tools: Sequence[LocalTool], *, can_ask: bool, outside: bool = False) -> list[LocalTool]:
        """Return the allowed tools, each with whether it needs approval; `outside` is whether they are MCP tools.

        Without a user to ask, tools that need approval are left out.
        """
        given: list[LocalTool] = []
        for tool in tools:
            name = tool.spec.name
            spelled = (name, OUTSIDE + name) if outside else (name,)
            if _matched(self.deny, *spelled):
                continue
            if _matched(self.ask, *spelled):
                tool.needs_approval = True
            elif _matched(self.allow, *spelled):
                tool.needs_approval = False
            if can_ask or not tool.needs_approval:
                given.append(tool)
        return given


def policy_of(options: argparse.Namespace, environ: Mapping[str, str]) -> Policy:
    """Return the policy that a flag names; an empty one without the flag. `--read-only` allows nothing more.

    Raises:
        ConfigurationError: it cannot be read, lies in the workspace, or is not valid; the message has all problems.
    """
    if options.policy is None:
        return Policy()
    path = Path(options.policy)
    try:
        places, root = (path.resolve(), path.parent.resolve()), Path(options.folder).resolve()
        if any(place.is_relative_to(root) for place in places):  # it, or a link to it
            raise ConfigurationError("`--policy`: the file lies in the workspace, where a model may change it")
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"`--policy`: it cannot be read: {os.strerror(error.errno or 0)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"`--policy`: it is not TOML: {error}") from None
    except RuntimeError:
        raise ConfigurationError("`--policy`: it cannot be read: it is a link to itself") from None
    policy = checked(plain, environ)
    return replace(policy, allow=()) if options.read_only else policy


def checked(plain: dict[str, Any], environ: Mapping[str, str]) -> Policy:
    """Return plain data as a policy; `environ` are the variables that it may take values from.

    Raises:
        ConfigurationError: it is none; the text names all that is wrong by its path.
    """
    problems = Problems({})
    policy = read(Policy, plain, "", problems) or Policy()
    for key in ("deny", "ask", "allow"):
        for at, pattern in enumerate(getattr(policy, key)):
            _check_pattern(pattern, f"{key}[{at}]", problems)
    for at, hook in enumerate(policy.hooks):
        for index, pattern in enumerate(hook.tools):
            _check_pattern(pattern, f"hooks[{at}].tools[{index}]", problems)
    env = {name: _value(name, value, environ, problems) for name, value in policy.env.items()}
    if problems.lines:
        raise ConfigurationError("`--policy`: " + "; ".join(problems.lines))
    return replace(policy, env=env)


def _value(name: str, value: object, environ: Mapping[str, str], problems: Problems) -> str:
    """Return the value of a variable; what may be a secret must stand in another, and is not repeated."""
    path = join("env", name)
    wanted = value["from"] if isinstance(value, dict) and set(value) == {"from"} else None
    if not _NAME.fullmatch(name):
        problems.add(path, "no name of a variable")
    elif isinstance(wanted, str):
        if wanted not in environ:
            problems.add(path, f"there is no variable {shown(wanted)}")
        return environ.get(wanted, "")
    elif not isinstance(value, str) or "\0" in value:
        problems.add(path, 'expected a text, or `{ from = "NAME" }`')
    elif is_secret(name, value) or _KEY.search(value):
        problems.add(path, 'it may be a secret: name a variable that holds it, `{ from = "NAME" }`')
    else:
        return value
    return ""


def _check_pattern(pattern: str, path: str, problems: Problems) -> None:
    """Note a name that is meant for another: what is not denied by mistake would be given."""
    near = get_close_matches(pattern.casefold(), BUILT_IN, n=1)
    if pattern not in BUILT_IN and near and not any(sign in pattern for sign in "*?["):
        problems.add(path, f"found {shown(pattern)}; did you mean `{near[0]}`?")


def _matched(patterns: Sequence[str], *names: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
