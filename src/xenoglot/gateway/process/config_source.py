"""Where a configuration comes from, so that it can be read again: a file, or nothing that could change."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from xenoglot.gateway.config.load import Config, load


class FileSource(Struct, frozen=True):
    """A file, and what of it the command line has said otherwise."""

    path: str
    environ: Mapping[str, str]
    host: str | None = None
    port: int | None = None
    workers: int | None = None

    def load(self, *, host: str | None = None, port: int | None = None) -> Config:
        """Read the file; `host` and `port` stand before its own, and before the command line's.

        Raises:
            ConfigurationError: it cannot be read, or something in it is wrong.
        """
        port = self.port if port is None else port
        return load(self.path, self.environ, host=host or self.host, port=port, workers=self.workers)
