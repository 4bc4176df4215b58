"""Finds the executable of a container without pulling its image.

| image | command | runs |
|---|---|---|
| mapped to a directory with a root file system | given | the command, with that directory as / |
| mapped to a virtual environment (or any directory with `bin/`) | given | the command, with its `bin` first on PATH |
| mapped to any other directory | given | the command, in that directory, with the `bin` of its `.venv` first on PATH |
| not mapped | given, and its program is installed | the command, with the programs of this machine |
| anything else | | nothing: the container waits, and its status has the next step (with `stub` the stub server replaces it) |

With `stub`, scripts (`sh -c SCRIPT`) are also read: if a program in the script is missing, the stub server replaces it.

A mapping names an image with or without tag: `--image vllm/vllm-openai=/opt/vllm`.
"""

import difflib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import imagenames
from localkube.kubelet.spec import podspec, scripts

PATIENCE: Final = 5.0
"""The timeout in seconds for Python to report whether a package exists. The report usually takes 0.05 s."""

NO_PACKAGE: Final = 7

MOST_NAMES: Final = 20_000
"""The maximum number of files in a directory that is searched for a similar name."""

CLOSE: Final = 0.75
"""The minimum similarity between a name and a misspelled name."""

THIS_MACHINE: Final = "host"
"""The image name that explicitly selects the executables of this machine."""

TAG: Final = re.compile(r"(@[^/]*|:[^/:]*)$")


class UnrunnableError(Exception):
    """The container cannot run on this machine. `reason` is for the status, and the message has the solution."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ProgramSource(Struct, frozen=True):
    """The source of the executables: a root file system, an environment in PATH, a directory, or this machine."""

    image_id: str
    root: Path | None = None
    environment: Path | None = None
    folder: Path | None = None

    @property
    def directory(self) -> Path | None:
        """Return the directory that replaces the image, or None if it does not exist."""
        return self.folder or self.environment or self.root


def check_name(image: str) -> None:
    """Reject an image name that no container runtime can parse."""
    if image and not imagenames.is_reference(image):
        raise UnrunnableError("InvalidImageName", f'couldn\'t parse image name "{image}": invalid reference format')


def find_source(image: str, images: Mapping[str, Path]) -> ProgramSource:
    """Return the source of the executables of an image."""
    directory = images.get(image) or images.get(without_tag(image))
    if directory is None:
        return ProgramSource("host://")
    if _is_environment(directory):
        return ProgramSource(f"environment://{directory}", environment=directory)
    if _is_root(directory):
        return ProgramSource(f"root://{directory}", root=directory)
    if not directory.is_dir():
        raise UnrunnableError(
            "InvalidImageMapping", f"image {image} is mapped to {directory}, which is not an existing directory"
        )
    beside = directory / ".venv"
    return ProgramSource(f"folder://{directory}", environment=beside if beside.is_dir() else None, folder=directory)


def without_tag(image: str) -> str:
    """Return the image name without tag and digest.

    >>> without_tag("registry:5000/vllm/vllm-openai:v0.10"), without_tag("busybox@sha256:0123")
    ('registry:5000/vllm/vllm-openai', 'busybox')
    """
    return TAG.sub("", TAG.sub("", image)) if "@" in image else TAG.sub("", image)


def _is_environment(directory: Path) -> bool:
    marked = (directory / "pyvenv.cfg").exists() or (directory / "conda-meta").is_dir()
    return marked or ((directory / "bin").is_dir() and not (directory / "etc").is_dir())


def _is_root(directory: Path) -> bool:
    return (directory / "etc").is_dir() and ((directory / "bin").exists() or (directory / "usr" / "bin").is_dir())


def check_command(image: str, argv: Sequence[str], *, has_command: bool, place: ProgramSource) -> None:
    """Reject a container without a command, because the image is not pulled and its command is unknown."""
    if has_command and argv:
        return
    if place.directory:
        raise UnrunnableError(
            "CommandMissing",
            f"image {image} is mapped to directory {place.directory}, which does not define a command. Set the "
            "command of the container",
        )
    raise UnrunnableError(
        "ImageNotMapped",
        "the container does not have a command, and images are not pulled on a local cluster. Set a command and "
        f"--image {without_tag(image)}=DIR, or use --stub",
    )


def check_directory(image: str, directory: str, place: ProgramSource, mounted: Sequence[str]) -> None:
    """Reject a container whose working directory does not exist and is not mounted."""
    if not directory.startswith("/") or _has_file(directory, place, mounted):
        return
    raise UnrunnableError(
        "ProgramNotFound",
        f'working directory "{directory}" does not exist on this machine. Correct workingDir, map the image with '
        f"--image {without_tag(image)}=DIR, or use --stub",
    )


def _has_file(path: str, place: ProgramSource, mounted: Sequence[str]) -> bool:
    """Return whether a container has a file or directory. All paths below a mount path are assumed to exist."""
    return _is_mounted(path, mounted) or os.path.lexists(_path_in_root(place.root, path))


def check_program(image: str, program: str, path: str, place: ProgramSource, mounted: Sequence[str]) -> None:
    """Reject a container whose executable does not exist. Paths in `mounted` are not checked."""
    if _exists(program, path, place.root or Path("/"), mounted):
        return
    if program.startswith("/") and os.path.isfile(_path_in_root(place.root, program)):
        raise UnrunnableError("StartError", f"program {program} is not executable. Run chmod +x on its file")
    meant = _similar_name_question(program, path, place.root or Path("/"))
    if place.directory:
        beside = "" if place.root else ", and neither does this machine"
        text = (
            f'image {image} is mapped to {place.directory}, which does not contain program "{program}"{beside}{meant}'
        )
        raise UnrunnableError("ProgramNotFound", text)
    if image == THIS_MACHINE:
        text = f'program "{program}" is not installed on this machine{meant}. Install it, or correct the command'
        raise UnrunnableError("ProgramNotFound", text)
    raise UnrunnableError(
        "ProgramNotFound",
        f'program "{program}" is not installed on this machine{meant}. Install it, map the image with --image '
        f"{without_tag(image)}=DIR, or use --stub",
    )


def _similar_name_question(program: str, path: str, root: Path) -> str:
    """Return a question with the most similar executable name, or an empty string if there is none."""
    names: set[str] = set()
    for directory in filter(None, path.split(":")):
        with suppress(OSError):
            names.update(islice(os.listdir(_path_in_root(root, directory)), MOST_NAMES))
    similar = difflib.get_close_matches(os.path.basename(program), sorted(names), 1, CLOSE)
    return f" (did you mean {similar[0]}?)" if similar else ""


class SearchPath(Struct, frozen=True):
    """The search path for the executables of a container: PATH, the working directory, and mounted paths."""

    path: str
    directory: str = "/"
    mounted: Sequence[str] = ()


def check_script(image: str, argv: Sequence[str], place: ProgramSource, searched: SearchPath) -> None:
    """Reject a container whose shell exists, but not the executables in its script."""
    for started in scripts.started_programs(argv):
        if not started.is_file:
            check_program(image, started.name, searched.path, place, searched.mounted)
            continue
        file = os.path.normpath(os.path.join(searched.directory, started.name))
        if not _has_file(file, place, searched.mounted):
            raise UnrunnableError(
                "ProgramNotFound", f'file "{started.name}" of image {image} does not exist on this machine'
            )


def check_module(image: str, argv: Sequence[str], path: str) -> None:
    """Reject `python3 -m MODULE` if the Python of this machine does not have the package."""
    package = scripts.python_module(argv)
    if package and not _has_package(path, package):
        raise UnrunnableError(
            "ProgramNotFound", f'Python package "{package}" of image {image} is not installed on this machine'
        )


@lru_cache(maxsize=1024)
def _has_package(path: str, package: str) -> bool:
    """Return whether Python finds the package. Check each package once, and return True if the result is unknown."""
    program = shutil.which("python3", path=path)
    if program is None:
        return True
    find = f"import importlib.util, sys; sys.exit({NO_PACKAGE} if importlib.util.find_spec(sys.argv[1]) is None else 0)"
    try:
        completed = subprocess.run(
            [program, "-c", find, package], capture_output=True, timeout=PATIENCE, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return completed.returncode != NO_PACKAGE


def _path_in_root(root: Path | None, path: str) -> str:
    """Return the location of a path below a root.

    The result is a text because `pathlib` would intern every name that a pod may have.
    """
    return os.path.join(root or "/", path.lstrip("/"))


def _exists(program: str, path: str, root: Path, mounted: Sequence[str]) -> bool:
    if program.startswith("/"):
        return _is_mounted(program, mounted) or _is_executable(root, program)
    if "/" in program:
        return True  # relative to the working directory, which is known only in the container
    directories = [directory for directory in path.split(":") if directory]
    return any(_is_executable(root, f"{directory}/{program}") for directory in directories)


def _is_mounted(program: str, mounted: Sequence[str]) -> bool:
    return any(f"{program}/".startswith(f"{target.rstrip('/')}/") for target in mounted)


def _is_executable(root: Path, path: str) -> bool:
    """Return whether the file exists. With a different root, a link counts, because its target is relative."""
    file = _path_in_root(root, path)
    return os.access(file, os.X_OK) and os.path.isfile(file) if root == Path("/") else os.path.lexists(file)


def stub_command(pod: JSONObject, container: JSONObject, why: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the command and the ports of the stub for a container that cannot run on this machine.

    Without a command, the stub is a server on the declared and probed ports of the container; init containers need
    none.
    """
    image = container.get("image") or ""
    is_init = any(other["name"] == container["name"] for other in podspec.init_containers(pod))
    if is_init and not podspec.is_sidecar(container, pod):
        return ("/bin/sh", "-c", 'echo "$0"', f"stub: init container of {image} did nothing: {why}"), ()
    probed = [_probed_port(container, probe) for _, probe in podspec.container_probes(container)]
    ports = {*podspec.declared_ports(container), *(port for port in probed if port)}
    return (), tuple(sorted(ports))


def _probed_port(container: JSONObject, probe: JSONObject) -> int:
    action = probe.get("httpGet") or probe.get("tcpSocket") or {}
    return podspec.resolve_port(container, action["port"]) if action else 0
