"""Records in requirements/wheels.json which wheels of the locked packages are available for each platform.

python -m tests.repository.lockedwheels    (`make lock` runs it; names of files only, no address)
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from testkit.repository import ROOT

RECORD: Final = ROOT / "requirements/wheels.json"
PYTHON: Final = "3.13"
LOCKS: Final = {
    "command.lock": ("macosx_11_0_arm64", "win_amd64"),
    "local.lock": ("macosx_13_0_arm64", "win_amd64", "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"),
}
"""The platforms of each lock: for cluster commands, and for the embedded cluster."""

OLDER: Final = ("2_27", "2_26", "2_24", "2_17", "2_12", "2_5")
"""Older glibc versions, whose wheels also run with the newest version in `LOCKS`."""


def accepted(platform: str) -> list[str]:
    """Return the platforms whose wheels run on a platform. pip determines compatible macOS platforms."""
    prefix, _, architecture = platform.partition("_2_28_")
    return [platform, *(f"{prefix}_{version}_{architecture}" for version in OLDER if architecture)]


def wheels_of(lock: str, platform: str) -> list[str]:
    """Query pip for the wheels of all locked packages on a platform, with the locked hashes."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = ["install", "--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--no-deps"]
        words += ["--only-binary", ":all:", "--require-hashes", "--python-version", PYTHON]
        words += [f"--platform={name}" for name in accepted(platform)]
        places = ["--target", folder, "--report", str(report), "--requirement", str(ROOT / "requirements" / lock)]
        subprocess.run([sys.executable, "-m", "pip", *words, *places], check=True)
        installed = json.loads(report.read_text())["install"]
    return sorted(entry["download_info"]["url"].rpartition("/")[2] for entry in installed)


if __name__ == "__main__":
    wheels = {
        lock: {platform: wheels_of(lock, platform) for platform in platforms} for lock, platforms in LOCKS.items()
    }
    RECORD.write_text(json.dumps({"date": f"{datetime.now(UTC):%Y-%m-%d}", "wheels": wheels}, indent=2) + "\n")
