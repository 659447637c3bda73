"""Permissions of an agent: which tools it has, and which of them require approval for each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.agent.tools.edit import EditTools
from xenoglot.agent.tools.plan import PlanTool
from xenoglot.agent.tools.read import ReadTools
from xenoglot.agent.tools.run import RunTool
from xenoglot.agent.tools.search import SearchTool
from xenoglot.tools.tool import LocalTool, tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.agent.sandbox.workspace import Workspace
    from xenoglot.backends.redaction import Redactor

PermissionMode: TypeAlias = Literal["no", "ask", "yes"]
"""Whether something may be done. With `no` the model is not given the tool at all."""


class Permissions(Struct, frozen=True, kw_only=True):
    """Permissions in addition to reading: to change files, and to run commands, which have all rights of their user."""

    write: PermissionMode = "no"
    shell: PermissionMode = "no"


def tools_for(
    workspace: Workspace,
    permissions: Permissions,
    *,
    environ: Mapping[str, str],
    redactor: Redactor | None = None,
) -> list[LocalTool]:
    """Return the tools over a workspace that may be used.

    Commands are given the variables of `environ` as they are; `redactor` takes secrets out of what they print.
    """
    looking = ReadTools(workspace)
    tools: list[LocalTool] = [
        tool(looking.list_dir),
        tool(looking.read_file),
        tool(looking.find),
        tool(SearchTool(workspace).search, exclusive=True),  # each starts a process, and a model may ask for hundreds
        tool(PlanTool().plan),
    ]
    if permissions.write != "no":
        editing = EditTools(workspace)
        asked = permissions.write == "ask"
        tools += [
            tool(function, needs_approval=asked, exclusive=True) for function in (editing.edit_file, editing.write_file)
        ]
    if permissions.shell != "no":
        commanding = RunTool(workspace.root, environ, redactor)
        tools.append(tool(commanding.run, needs_approval=permissions.shell == "ask", exclusive=True))
    return tools
