"""A Ray cluster of two nodes on this machine: prints its address, and stands until its input ends."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ray.cluster_utils import Cluster

MEMORY = 80 * 1024 * 1024
"""Bytes of each object store: the least that Ray takes."""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        # Ray writes the address of a running cluster into its default folder, whatever `temp_dir` says, and expects
        # that folder to exist. So the default folder itself is this one.
        os.environ["RAY_TMPDIR"] = folder
        Path(folder, "ray").mkdir()
        head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        try:
            print(cluster.address, flush=True)  # noqa: T201  to whoever started it
            sys.stdin.read()
        finally:
            cluster.shutdown()  # type: ignore[no-untyped-call]  # it has no types
