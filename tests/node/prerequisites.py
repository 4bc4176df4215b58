"""Checks whether this machine can run a node, and installs the Debian packages that a node needs."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane.build import BuildError, Say, exclusive

PACKAGES: Final = {
    "buildah": "buildah",
    "busybox-static": "busybox",
    "conntrack": "conntrack",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "debootstrap": "debootstrap",
    "ethtool": "ethtool",
    "iptables": "iptables",
    "kmod": "modprobe",
    "nftables": "nft",
    "runc": "runc",
    "socat": "socat",
}
"""Debian packages, each with one of its executables."""

TRIAL: Final = """set -e
ip link add one type veth peer name two
nft add table ip trial
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged
"""
"""The actions that a node performs in its namespaces."""

CGROUPS: Final = Path("/sys/fs/cgroup")
CONTROLLERS: Final = ("cpu", "cpuset", "memory", "pids")
CAP_SYS_ADMIN: Final = 21
SBIN: Final = "/usr/sbin:/sbin"
LOCK_SECONDS: Final = 600
"""The time that apt-get waits for other package managers, such as unattended upgrades."""


class AbsentError(BuildError):
    """This machine does not satisfy a node requirement. Tests are skipped."""


def obstacle() -> str:
    """Return the reason why this machine cannot run a node, or an empty string. Packages may be missing."""
    if os.geteuid() != 0 or not _capabilities() >> CAP_SYS_ADMIN & 1:
        return "a node needs root with CAP_SYS_ADMIN"
    if shutil.which("apt-get") is None and absent_packages():
        return f"a node needs Debian, or these programs: {', '.join(PACKAGES[name] for name in absent_packages())}"
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        return "a node needs overlayfs in the kernel"
    if absent := [name for name in CONTROLLERS if not has_controller(name)]:
        return f"a node needs the cgroup controllers {', '.join(absent)}, mounted and writable at {CGROUPS}"
    return ""


def has_controller(name: str) -> bool:
    """Return whether a cgroup controller of version 1 or 2 is available."""
    folder = CGROUPS if is_unified() else CGROUPS / name
    listed = is_unified() and name in (CGROUPS / "cgroup.controllers").read_text().split()
    return os.access(folder / "cgroup.procs", os.W_OK) and (listed or not is_unified())


def is_unified() -> bool:
    """Return whether the machine supports only cgroup version 2."""
    return (CGROUPS / "cgroup.controllers").exists()


def absent_packages() -> list[str]:
    """Return Debian packages whose executable is missing."""
    path = f"{os.environ['PATH']}:{SBIN}"
    return [package for package, program in PACKAGES.items() if shutil.which(program, path=path) is None]


def install_packages(directory: Path, say: Say) -> None:
    """Install missing Debian packages. Only one of several concurrent test runs installs them."""
    with exclusive(directory, say):
        if wanted := absent_packages():
            say(f"installing {', '.join(wanted)}")
            apt("update", "-qq")
            apt("install", "-qq", "--yes", "--no-install-recommends", *wanted)


def unpacked(package: str, directory: Path) -> Path:
    """Return the directory with the files of a Debian package that is not installed."""
    target = directory / package
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            apt("download", "-qq", package, directory=Path(folder))
            (file,) = Path(folder).glob("*.deb")
            subprocess.run(["dpkg-deb", "--extract", str(file), f"{folder}/files"], check=True)
            Path(folder, "files").rename(target)
    return target


def apt(*words: str, directory: Path | None = None) -> None:
    """Run apt-get in a directory. Raise `BuildError` if it fails."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", f"--option=DPkg::Lock::Timeout={LOCK_SECONDS}", *words]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def try_namespaces(directory: Path) -> None:
    """Try the actions of a node in namespaces, with an overlay file system in the directory."""
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", TRIAL]
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        for name in ("lower", "upper", "work", "merged"):
            (Path(folder) / name).mkdir()
        environment = os.environ | {"PATH": f"{os.environ['PATH']}:{SBIN}"}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AbsentError(f"a node needs network and mount namespaces, veth, nftables and overlayfs: {done.stderr}")


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
