"""What can be wrong with `[tools]`, and the environment variables that it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.gateway.config.schema import header_problem, join, shown, url_problem
from xenoglot.gateway.config.tools.settings import PUBLIC_URLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.gateway.config.schema import Problems
    from xenoglot.gateway.config.tools.settings import HostedToolSettings, McpServerSettings, SearchSettings

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def tool_variables(tools: HostedToolSettings) -> Iterator[tuple[str, str]]:
    """Yield the environment variables with keys, each with its path."""
    search = tools.web_search
    if search is not None and search.key_env is not None:
        yield "tools.web_search.key_env", search.key_env
    for name, server in tools.mcp.servers.items():
        if server.key_env is not None:
            yield join(join("tools.mcp.servers", name), "key_env"), server.key_env


def check_hosted_tools(tools: HostedToolSettings, problems: Problems) -> None:
    """Note what is wrong with the tools of the gateway."""
    for name, server in tools.mcp.servers.items():
        _check_server(name, server, problems)
    for kind, settings in tools.executors.items():
        path = f"tools.{kind}"
        if settings.executor == "mcp":
            _check_tool(settings.server, settings.tool, tuple(tools.mcp.servers), path, problems)
        elif settings.executor == "python" and not settings.use:
            problems.add(f"{path}.use", 'required with `executor = "python"`: a function as `module:object`')
    if tools.web_search is not None:
        _check_search(tools.web_search, problems)


def _check_server(name: str, server: McpServerSettings, problems: Problems) -> None:
    path = join("tools.mcp.servers", name)
    if not _NAME.fullmatch(name):
        problems.add(path, f"found {shown(name)}; expected letters, digits, `_` and `-`, up to 64 of them")
    if problem := url_problem(server.url):
        problems.add(join(path, "url"), problem)
    for key, value in server.headers.items():
        if problem := header_problem(key, value):
            problems.add(join(join(path, "headers"), key), problem)


def _check_tool(server: str | None, tool: str | None, servers: Sequence[str], path: str, problems: Problems) -> None:
    if server not in servers:
        known = ", ".join(servers) or "none is configured"
        problems.add(f"{path}.server", f"expected a name under [tools.mcp.servers] ({known})")
    if not tool:
        problems.add(f"{path}.tool", 'required with `executor = "mcp"`: the name of a tool of the server')


def _check_search(search: SearchSettings, problems: Problems) -> None:
    path = "tools.web_search"
    if search.executor in ("mcp", "python"):
        return
    if not search.address:
        problems.add(f"{path}.url", f"required with `executor = {shown(search.executor)}`: the address of the search")
        return
    template = search.executor == "url"
    names = set(_PLACEHOLDER.findall(search.address))
    if template and ("query" not in names or names - {"query", "max_results"}):
        problems.add(f"{path}.url", "expected `{query}` in it, and no placeholder but `{max_results}`")
    plain = _PLACEHOLDER.sub("x", search.address) if template else search.address
    if problem := url_problem(plain):
        problems.add(f"{path}.url", problem)
    if search.executor in PUBLIC_URLS and search.key_env is None:
        problems.add(f"{path}.key_env", f"required with `executor = {shown(search.executor)}`: it has the key")
