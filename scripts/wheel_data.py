"""The build of a wheel: man pages and shell completions, made from the argument parser, go into its `share` folder.

Hatchling loads this file, see `tool.hatch.build.targets.wheel.hooks.custom` in pyproject.toml. An editable install has
none of them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPLETIONS = {
    "bash": "share/bash-completion/completions/xenoglot",
    "zsh": "share/zsh/site-functions/_xenoglot",
    "fish": "share/fish/vendor_completions.d/xenoglot.fish",
}
"""Shell -> where it looks for the completions of a program, below the prefix of an installation."""

MAN = "share/man/man1"


class WheelData(BuildHookInterface[Any]):
    """Generates the files in a temporary folder, and removes it after the build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel."""
        self.folder = Path(tempfile.mkdtemp(prefix="xenoglot-wheel-"))
        if version == "editable":
            return
        for place, text in generated(Path(self.root), self.metadata.version):
            file = self.folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(file)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  those of the interface
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def generated(root: Path, release: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file below a prefix, and its text; `release` is the version that is built."""
    sys.path.insert(0, str(root / "src"))
    from xenoglot.cli import command_parser  # noqa: PLC0415  the sources that are built, wherever this is run from
    from xenoglot.launching.completion import script  # noqa: PLC0415
    from xenoglot.launching.man_pages import man_pages  # noqa: PLC0415

    for shell, place in COMPLETIONS.items():
        yield place, script(command_parser(), shell)
    for name, text in man_pages(command_parser(), release).items():
        yield f"{MAN}/{name}", text
