"""The bill of materials (CycloneDX 1.6) of what `make install` installs, from the locks; nothing is resolved or asked.

    python scripts/sbom.py [--check | VERSION]

Writes requirements/sbom.json; with --check it only says whether the file is what it would write. That file is the same
for all versions, so it names none. With a VERSION, the bill of that release is printed.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "requirements" / "sbom.json"
LOCKS = {"run": "required", "build": "excluded"}
"""The locks that are installed, and what their parts are to the product: in it, or only needed to make it."""

ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))?(?P<hashes>(?: --hash=sha256:\w+)+)"
)


def components(lock: str) -> list[dict[str, object]]:
    """Return the parts that a lock names, each with the digests of the files that may be installed for it."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return [component(line, lock) for line in lines]


def component(line: str, lock: str) -> dict[str, object]:
    """Return one part; a line that is no pinned requirement with hashes has no place in a lock."""
    found = ENTRY.fullmatch(line)
    if found is None:
        message = f"requirements/{lock}.txt: not pinned by version and hash: {line[:80]}"
        raise SystemExit(message)
    purl = f"pkg:pypi/{found['name']}@{found['version']}"
    said: dict[str, object] = {
        "type": "library",
        "bom-ref": f"{lock}:{purl}",
        "name": found["name"],
        "version": found["version"],
        "scope": LOCKS[lock],
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in re.findall(r"sha256:(\w+)", found["hashes"])],
    }
    if found["marker"]:
        said["properties"] = [{"name": "xenoglot:marker", "value": found["marker"]}]
    return said


def document(version: str | None = None) -> str:
    """Return the bill; the same locks give the same text. `version` is that of the project, if it is a release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    purl = f"pkg:pypi/{project['name']}{f'@{version}' if version else ''}"
    parts = [part for lock in LOCKS for part in components(lock)]
    needed = [part["bom-ref"] for part in parts if part["scope"] == "required"]
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl,
                "name": project["name"],
                **({"version": version} if version else {}),
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": purl,
            }
        },
        "components": parts,
        "dependencies": [{"ref": purl, "dependsOn": needed}],
    }
    return json.dumps(bill, indent=1) + "\n"


def main() -> int:
    """Write the bill, or compare it."""
    if sys.argv[1:] and sys.argv[1] != "--check":
        sys.stdout.write(document(sys.argv[1]))
        return 0
    text = document()
    if "--check" in sys.argv[1:]:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        sys.stderr.write("" if same else f"{TARGET.relative_to(ROOT)} is not that of the locks: `make sbom`\n")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
