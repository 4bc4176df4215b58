"""Builds Go programs for package tests, once for each version of their modules. A build lasts several minutes.

    python -m tests.kubernetes.programs.build [helm | promtool | kueue | lws | operator-verify | scheduler-plugins]

Out: the paths of the programs, below the user's cache folder. Tests only use existing programs.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane import build

HERE = Path(__file__).parent
MANIFESTS: Final = "manifests"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a Go module in this directory builds. The environment variable `variable` can replace it.

    `manifests` is a folder of the module of the program, copied next to it.
    """

    name: str
    package: str
    variable: str
    tags: str = ""
    manifests: str = ""

    @property
    def place(self) -> Path:
        """Return the path of the executable."""
        texts = [(HERE / self.name / name).read_bytes() for name in ("go.mod", "go.sum")]
        digest = hashlib.sha256(b"".join((*texts, self.tags.encode())))
        return build.cache().parent / self.name / digest.hexdigest()[:16] / self.name

    @property
    def missing(self) -> str:
        """Return the reason why tests are skipped."""
        return f"no {self.name}: build it with `python -m tests.kubernetes.programs.build`, or set {self.variable}"

    def find(self) -> Path | None:
        """Return an existing build or the program in the environment variable, or None if there is none."""
        if named := os.environ.get(self.variable):
            return Path(named)
        return self.place if self.place.exists() else None

    def make(self) -> Path:
        """Build the executable if it does not exist. Return its path."""
        target = self.place
        with build.exclusive(target.parents[1], say):
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                self._compile(target)
        return target

    def _compile(self, target: Path) -> None:
        unfinished = target.with_suffix(".part")
        say(f"building {self.name} (once; some minutes)")
        self._go("build", f"-tags={self.tags}", "-ldflags", "-s -w", "-o", str(unfinished), self.package)
        if self.manifests:
            source = Path(self._go("list", "-f", "{{.Module.Dir}}", self.package).strip()) / self.manifests
            shutil.copytree(source, target.parent / MANIFESTS, copy_function=shutil.copyfile, dirs_exist_ok=True)
        unfinished.replace(target)

    def _go(self, *arguments: str) -> str:
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
        command = [str(build.find_go(say)), *arguments]
        done = subprocess.run(
            command, cwd=HERE / self.name, env=os.environ | settings, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout


HELM: Final = Program("helm", "helm.sh/helm/v3/cmd/helm", "LWS_HELM")
PROMTOOL: Final = Program(
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    "LWS_PROMTOOL",
    # Rules are evaluated without service discovery, which requires the clients of dozens of clouds.
    tags="remove_all_sd",
)
KUEUE: Final = Program("kueue", "sigs.k8s.io/kueue/cmd/kueue", "LWS_KUEUE", manifests="config/components")
LWS: Final = Program("lws", "sigs.k8s.io/lws/cmd", "LWS_GO_MANAGER")
"""The Go manager in the last release with a complete module, for handovers of LeaderWorkerSets."""

OPERATOR_VERIFY: Final = Program(
    "operator-verify", "github.com/operator-framework/api/cmd/operator-verify", "LWS_OPERATOR_VERIFY"
)
"""The validators of the Operator Framework."""

SCHEDULER_PLUGINS: Final = Program(
    "scheduler-plugins",
    "sigs.k8s.io/scheduler-plugins/cmd/scheduler",
    "LWS_SCHEDULER_PLUGINS",
    manifests="manifests/coscheduling",
)
"""kube-scheduler of Kubernetes 1.33 with additional plugins, including coscheduling, and its PodGroup CRD."""

PROGRAMS: Final = {
    program.name: program for program in (HELM, PROMTOOL, KUEUE, LWS, OPERATOR_VERIFY, SCHEDULER_PLUGINS)
}


def say(text: str) -> None:
    """Print a progress message."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        sys.stdout.write(f"{PROGRAMS[name].make()}\n")
