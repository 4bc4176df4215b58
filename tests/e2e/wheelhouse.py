"""Builds a directory of wheels for an offline installation, from the packages in this environment."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from tests.e2e.harness import ROOT

LOCK = ROOT / "requirements/local.lock"
"""The dependencies of a release on all supported platforms."""


def fill(directory: Path) -> None:
    """Build wheels for the locked packages in this environment."""
    for name in re.findall(r"^([a-z0-9.-]+)==", LOCK.read_text(), re.MULTILINE):
        try:
            pack(distribution(name), directory)
        except PackageNotFoundError:
            continue  # needed only on other platforms or Python versions


def pack(found: Distribution, directory: Path) -> None:
    """Rebuild the wheel from which this distribution was installed. The compression and the hashes differ."""
    told = dict(line.split(": ", 1) for line in (found.read_text("WHEEL") or "").splitlines() if ": " in line)
    name = re.sub(r"[-_.]+", "_", found.metadata["Name"])
    files = [path for path in found.files or () if ".." not in path.parts and path.suffix != ".pyc"]
    kept = [path for path in files if path.name not in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}]
    record = next(path for path in files if path.name == "RECORD")
    with ZipFile(directory / f"{name}-{found.version}-{told['Tag']}.whl", "w") as wheel:
        for path in kept:
            wheel.write(path.locate(), str(path))
        wheel.writestr(str(record), "".join(f"{path},,\n" for path in (*kept, record)))
