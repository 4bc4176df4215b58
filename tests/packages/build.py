"""Build the Go programs that the tests of packages use, once per content of their modules; minutes, so tests only use
what is there.

    python -m tests.packages.build [helm | promtool]

Out: the paths of the programs, below the user's cache folder.
"""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane import build

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a Go module below this folder builds; `variable` of the environment names another build of it."""

    name: str
    package: str
    variable: str
    tags: str = ""

    @property
    def place(self) -> Path:
        """Return where it is kept."""
        texts = [(HERE / self.name / name).read_bytes() for name in ("go.mod", "go.sum")]
        digest = hashlib.sha256(b"".join((*texts, self.tags.encode())))
        return build.cache().parent / self.name / digest.hexdigest()[:16] / self.name

    @property
    def missing(self) -> str:
        """Return why tests are skipped."""
        return f"no {self.name}: build it with `python -m tests.packages.build`, or set {self.variable}"

    def find(self) -> Path | None:
        """Return one that was built before, or that the environment names; None where there is none."""
        if named := os.environ.get(self.variable):
            return Path(named)
        return self.place if self.place.exists() else None

    def make(self) -> Path:
        """Build it where it is missing; return its path."""
        target = self.place
        with build.exclusive(target.parents[1], say):
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                self._compile(target)
        return target

    def _compile(self, target: Path) -> None:
        unfinished = target.with_suffix(".part")
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
        say(f"building {self.name} (once; some minutes)")
        subprocess.run(
            [
                str(build.find_go(say)),
                "build",
                f"-tags={self.tags}",
                "-ldflags",
                "-s -w",
                "-o",
                str(unfinished),
                self.package,
            ],
            cwd=HERE / self.name,
            env=os.environ | settings,
            check=True,
        )
        unfinished.replace(target)


HELM: Final = Program("helm", "helm.sh/helm/v3/cmd/helm", "LWS_HELM")
PROMTOOL: Final = Program(
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    "LWS_PROMTOOL",
    # Rules are evaluated without the clients of dozens of clouds.
    tags="remove_all_sd",
)
PROGRAMS: Final = {program.name: program for program in (HELM, PROMTOOL)}


def say(text: str) -> None:
    """Report progress."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        sys.stdout.write(f"{PROGRAMS[name].make()}\n")
