"""A directory of wheels that installs a release without a network: the packages of this environment, packed again."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from tests.e2e.harness import ROOT

LOCK = ROOT / "requirements/local.lock"
"""The dependencies of a release, on this and other platforms."""


def fill(directory: Path) -> None:
    """Pack the packages of the lock that this environment has."""
    for name in re.findall(r"^([a-z0-9.-]+)==", LOCK.read_text(), re.MULTILINE):
        try:
            pack(distribution(name), directory)
        except PackageNotFoundError:
            continue  # needed on another platform or Python only


def pack(found: Distribution, directory: Path) -> None:
    """Write the wheel that this distribution was installed from, except for its compression and hashes."""
    told = dict(line.split(": ", 1) for line in (found.read_text("WHEEL") or "").splitlines() if ": " in line)
    name = re.sub(r"[-_.]+", "_", found.metadata["Name"])
    files = [path for path in found.files or () if ".." not in path.parts and path.suffix != ".pyc"]
    kept = [path for path in files if path.name not in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}]
    record = next(path for path in files if path.name == "RECORD")
    with ZipFile(directory / f"{name}-{found.version}-{told['Tag']}.whl", "w") as wheel:
        for path in kept:
            wheel.write(path.locate(), str(path))
        wheel.writestr(str(record), "".join(f"{path},,\n" for path in (*kept, record)))
