"""Build Helm from its Go module, once per content of the module; minutes, so tests only use what is there.

    python -m tests.packages.build

Out: the path of the program, below the user's cache folder.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane import build

HERE = Path(__file__).parent / "helm"
PROGRAM = "helm.sh/helm/v3/cmd/helm"
OVERRIDE = "LWS_HELM"


def find() -> Path | None:
    """Return a Helm that was built before, or that the environment names; None where there is none."""
    if named := os.environ.get(OVERRIDE):
        return Path(named)
    return place() if place().exists() else None


def place() -> Path:
    """Return where the program is kept."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum")))
    return build.cache().parent / "helm" / digest.hexdigest()[:16] / "helm"


def make() -> Path:
    """Build the program where it is missing; return its path."""
    target = place()
    with build.exclusive(target.parents[1], say):
        if not target.exists():
            go = build.find_go(say)
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_suffix(".part")
            settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
            say("building helm (once; some minutes)")
            subprocess.run(
                [str(go), "build", "-ldflags", "-s -w", "-o", str(unfinished), PROGRAM],
                cwd=HERE,
                env=os.environ | settings,
                check=True,
            )
            unfinished.replace(target)
    return target


def say(text: str) -> None:
    """Report progress."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.stdout.write(f"{make()}\n")
