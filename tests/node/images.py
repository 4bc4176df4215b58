"""Builds node images from Debian packages, executables, and this repository, without a registry.

    python -m tests.node.images

Out: archives below the user's cache folder, each named by the hash of its inputs.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy import image
from tests.controlplane import build
from tests.controlplane.build import BuildError, Say
from tests.node import prerequisites, programs
from tests.node.machine import environment

BUSYBOX: Final = "localhost/busybox:1"
OTHER_BUSYBOX: Final = "localhost/busybox:2"
"""The same executables and a file `/etc/second`, for tests of updates."""

COREDNS: Final = "localhost/coredns:1"
PAUSE: Final = "localhost/pause:1"
PRODUCT: Final = "localhost/leaderworkerset:tested"
LOCAL: Final = "localhost/lws:tested"
PREVIOUS: Final = "localhost/leaderworkerset:previous"
"""The latest version in CHANGELOG.md."""

EXAMPLES: Final = "localhost/examples:1"
"""Python with numpy, and the scripts of two examples in the working directory."""

EXAMPLE_FILES: Final = tuple(
    image.ROOT / "examples" / name
    for name in (
        "allreduce/allreduce.py",
        "tensor-parallel/check.py",
        "tensor-parallel/model.py",
        "tensor-parallel/server.py",
    )
)
LOCK: Final = image.ROOT / "requirements" / "test.lock"
BASE: Final = "localhost/python:debian"
BASE_PACKAGES: Final = ("ca-certificates", "python-is-python3", "python3", "python3-pip")
BUNDLE: Final = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_SETTINGS: Final = Path("/etc/pip.conf")
PATH: Final = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT: Final = 3
"""The number of old archives of an image that are retained, because other working trees may use them."""

RECIPE: Final = 1
"""The format version. Increment it when this module builds different images from the same content."""


@dataclass(frozen=True, slots=True)
class Store:
    """An image store for buildah, with mounts in a separate namespace."""

    directory: Path

    def run(self, *words: str, sources: Path = image.ROOT) -> str:
        """Run buildah in a directory until it exits. Return its output."""
        places = ["--root", str(self.directory / "images"), "--runroot", str(self.directory / "run")]
        command = ["unshare", "--mount", "buildah", *places, *words]
        settings = environment(self.directory) | {"BUILDAH_ISOLATION": "chroot", "TMPDIR": str(self.directory)}
        done = subprocess.run(command, env=settings, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"buildah {' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout.strip()

    def commit(self, name: str, content: Path, command: Sequence[str] = ("/bin/sh",)) -> None:
        """Build an image from a directory with this command."""
        container = self.run("from", "scratch")
        self.run("copy", "--quiet", container, str(content), "/")
        self.run("config", "--entrypoint", json.dumps(command), "--cmd", "", "--env", f"PATH={PATH}", container)
        self.run("commit", "--quiet", "--rm", container, name)

    def archive(self, name: str, path: Path) -> None:
        """Write an image to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        self.run("push", "--quiet", name, f"docker-archive:{unfinished}:{name}")
        unfinished.replace(path)


def archives(assets: Path, say: Say) -> list[Path]:
    """Return the archives of all node images. Build missing archives. `assets` contains CoreDNS."""
    busybox = static_busybox()
    small = place("busybox", [busybox]), place("busybox-other", [busybox]), place("pause", [busybox])
    wanted = [
        *small,
        place("coredns", [assets / "coredns"]),
        place("leaderworkerset", product_files()),
        place("examples", [*EXAMPLE_FILES, LOCK]),
    ]
    with build.exclusive(cache(), say):
        if not all(path.exists() for path in wanted):
            say("making images (once; a few minutes)")
            make_small(wanted[:3])
            make_coredns(wanted[3], assets / "coredns")
            make_product(wanted[4], say)
            make_examples(wanted[5], say)
            for path in wanted:
                remove_old(path)
    return wanted


def make_small(targets: Sequence[Path]) -> None:
    """Build the busybox images and the image of the pause container."""
    if all(path.exists() for path in targets):
        return
    store = Store(cache() / "store")
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        root = Path(folder) / "root"
        unpack_busybox(root)
        store.commit(BUSYBOX, root)
        store.archive(BUSYBOX, targets[0])
        (root / "etc" / "second").write_text("second\n")
        store.commit(OTHER_BUSYBOX, root)
        store.archive(OTHER_BUSYBOX, targets[1])
        store.commit(PAUSE, root, ["/bin/sleep", "2147483647"])
        store.archive(PAUSE, targets[2])


def unpack_busybox(root: Path) -> None:
    """Create a root file system that contains busybox."""
    busybox = static_busybox()
    for name in ("bin", "etc", "root", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(str(busybox), root / "bin" / "busybox")
    for applet in subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")


def static_busybox() -> Path:
    """Return a statically linked busybox executable. Debian's two busybox packages conflict."""
    installed = str(shutil.which("busybox", path=environment(cache())["PATH"]))
    if subprocess.run(["ldd", installed], capture_output=True, check=False).returncode:
        return Path(installed)
    return prerequisites.unpacked("busybox-static", cache()) / "bin" / "busybox"


def make_coredns(target: Path, program: Path) -> None:
    """Build the DNS server image."""
    if target.exists():
        return
    store = Store(cache() / "store")
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        Path(folder).chmod(0o755)
        shutil.copy(program, Path(folder) / "coredns")
        store.commit(COREDNS, Path(folder), ["/coredns"])
    store.archive(COREDNS, target)


def make_product(target: Path, say: Say) -> None:
    """Build the manager image with its Containerfile on a base image of Debian packages."""
    if target.exists():
        return
    store = Store(cache() / "store")
    build_product(store, PRODUCT, image.ROOT, say)
    store.archive(PRODUCT, target)


def make_previous(sources: Path, say: Say) -> Path:
    """Build the image of an earlier version with the Containerfile in its sources. Return its archive."""
    target = place("previous", [sources / "deploy" / "Containerfile", sources / "CHANGELOG.md"])
    with build.exclusive(cache(), say):
        if not target.exists():
            store = Store(cache() / "store")
            build_product(store, PREVIOUS, sources, say)
            store.archive(PREVIOUS, target)
            remove_old(target)
    return target


def run_local(say: Say, *words: str) -> str:
    """Run the `lws` image with the embedded cluster, as its user and without capabilities. Return the output."""
    with build.exclusive(cache(), say):
        store = Store(cache() / "store")
        build_product(store, LOCAL, image.ROOT, say, "local")
        container = store.run("from", LOCAL)
        try:
            return store.run("run", "--isolation=chroot", "--cap-drop=all", container, "--", "/usr/bin/lws", *words)
        finally:
            store.run("rm", container)


def build_product(store: Store, name: str, sources: Path, say: Say, target: str = "") -> None:
    """Build an image with the Containerfile in these sources, for the manager or another target."""
    base = make_base(store, say)
    say(f"building {name}")
    words = image.words(base, name, image.commit(), "1970-01-01T00:00:00Z", target)
    store.run(*words, "--layers", "--isolation=chroot", *pip_files(), ".", sources=sources)


def make_examples(target: Path, say: Say) -> None:
    """Build an image that contains two examples."""
    if target.exists():
        return
    store = Store(cache() / "store")
    container = store.run("from", make_base(store, say))
    store.run("copy", "--quiet", container, *map(str, EXAMPLE_FILES), "/example/")
    numpy = [
        entry for entry in re.split(r"^(?=\S)", LOCK.read_text(), flags=re.MULTILINE) if entry.startswith("numpy==")
    ]
    with tempfile.NamedTemporaryFile("w", dir=cache(), suffix=".lock") as lock:
        lock.write("".join(numpy))
        lock.flush()
        mounted = [*pip_files(), f"--volume={lock.name}:/numpy.lock:ro"]
        pip = ["pip", "install", "--quiet", "--break-system-packages", "--no-deps", "--require-hashes"]
        store.run("run", *mounted, container, *pip, "--requirement", "/numpy.lock")
    store.run("config", "--workingdir", "/example", container)
    store.run("commit", "--quiet", "--rm", container, EXAMPLES)
    store.archive(EXAMPLES, target)


def pip_files() -> list[str]:
    """Return the build flags for the pip settings of this machine."""
    return [f"--volume={path}:{path}:ro" for path in (BUNDLE, PIP_SETTINGS) if path.exists()]


def make_base(store: Store, say: Say) -> str:
    """Build an image with Debian's Python unless it exists. Return its name with the digest."""
    name = f"{BASE}-{digest_of([], BASE_PACKAGES)}"
    if not store.run("images", "--filter", f"reference={name}", "--format", "{{.Digest}}"):
        say("making a base of Debian packages (once; a few minutes)")
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            root = Path(folder) / "root"
            command = ["debootstrap", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}", release(), str(root)]
            done = subprocess.run(command, env=environment(Path(folder)), capture_output=True, text=True, check=False)
            if done.returncode:
                log = root / "debootstrap" / "debootstrap.log"
                raise BuildError(
                    f"debootstrap failed:\n{log.read_text()[-2000:] if log.exists() else done.stderr[-2000:]}"
                )
            for left in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
                shutil.rmtree(root / left, ignore_errors=True)
            store.commit(name, root)
    digest = store.run("images", "--filter", f"reference={name}", "--format", "{{.Digest}}")
    return f"{name}@{digest.splitlines()[0]}"


def remove_old(newest: Path) -> None:
    """Remove all archives of the same image except the latest, because each change builds a new archive."""
    name = newest.name.rpartition("-")[0]
    others = [path for path in cache().glob(f"{name}-*.tar") if path.name.rpartition("-")[0] == name and path != newest]
    for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-KEPT]:
        path.unlink()


def product_files() -> list[Path]:
    """Return the files from which the manager image is built."""
    given = (image.ROOT / ".containerignore").read_text().splitlines()
    roots = [image.ROOT / line.removeprefix("!") for line in given if line.startswith("!")]
    files = [file for root in roots for file in ([root] if root.is_file() else root.rglob("*"))]
    sources = [file for file in files if file.is_file() and file.suffix != ".pyc"]
    return [image.ROOT / "deploy" / "Containerfile", *sorted(sources)]


def place(name: str, files: Iterable[Path]) -> Path:
    """Return the path of an image archive."""
    return cache() / f"{name}-{digest_of(files)}.tar"


def digest_of(files: Iterable[Path], words: Sequence[str] = BASE_PACKAGES) -> str:
    """Return the hash of an image's inputs."""
    digest = hashlib.sha256(repr((RECIPE, release(), words)).encode())
    for file in files:
        digest.update(f"{file.name} {file.stat().st_size} ".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def release() -> str:
    """Return the name of the Debian release on this machine."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return next(line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME="))


def cache() -> Path:
    """Return the image directory. Create it if it does not exist."""
    directory = build.cache().parent / "images"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


if __name__ == "__main__":
    try:
        made = archives(programs.assets(programs.say), programs.say)
        sys.stdout.writelines(f"{path}\n" for path in made)
    except BuildError as error:
        sys.exit(f"the images of a node cannot be made: {error}")
