"""Record which wheels of the locked packages the package index has for macOS and Windows, in requirements/wheels.json, with the date.

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

LOCK: Final = ROOT / "requirements/runtime.lock"
RECORD: Final = ROOT / "requirements/wheels.json"
PYTHON: Final = "3.13"
PLATFORMS: Final = ("macosx_11_0_arm64", "win_amd64")


def wheels_of(platform: str) -> list[str]:
    """Ask pip for the wheels of all locked packages on a platform, with the hashes of the lock."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = ["install", "--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--no-deps"]
        wanted = ["--only-binary", ":all:", "--require-hashes", "--platform", platform, "--python-version", PYTHON]
        places = ["--target", folder, "--report", str(report), "--requirement", str(LOCK)]
        subprocess.run([sys.executable, "-m", "pip", *words, *wanted, *places], check=True)
        installed = json.loads(report.read_text())["install"]
    return sorted(entry["download_info"]["url"].rpartition("/")[2] for entry in installed)


if __name__ == "__main__":
    wheels = {platform: wheels_of(platform) for platform in PLATFORMS}
    RECORD.write_text(json.dumps({"date": f"{datetime.now(UTC):%Y-%m-%d}", "wheels": wheels}, indent=2) + "\n")
