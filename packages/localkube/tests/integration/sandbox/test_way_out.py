"""Tests outgoing connections from the pod network with each installed carrier command."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.repository import PATHS
from tests.integration.sandbox.harness import Machine, machine

from localkube.kubelet.sandbox.egress import NO_WAY_OUT

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def install(directory: Path, name: str, script: str) -> str:
    """Create an executable. Return a PATH that contains it and no other carrier."""
    program = directory / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"


@pytest.mark.parametrize(("name", "nameserver"), [("slirp4netns", "10.88.0.3"), ("pasta", "169.254.1.1")])
async def test_installed_program_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, nameserver: str
) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    if name == "pasta" and shutil.which("slirp4netns"):
        pytest.skip("slirp4netns is installed, and preferred")
    monkeypatch.setenv("PATH", install(tmp_path, name, f'exec {program} "$@"'))
    async with machine(tmp_path) as made:
        if NO_WAY_OUT in str(made.capabilities.missing):
            pytest.skip(f"{name} does not work here: {made.capabilities.missing}")
        _, output = await made.sh(await made.pod("a"), "cat /etc/resolv.conf")
        assert output == f"nameserver {nameserver}\n"


async def test_failing_program_is_reported_and_pods_run_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", install(tmp_path, "slirp4netns", "echo no tun device >&2; exit 3"))

    async def scenario(made: Machine) -> None:
        (line,) = (line for line in made.capabilities.missing if NO_WAY_OUT in line)
        assert "slirp4netns: the process exited with code 3" in line
        assert "no tun device" in (tmp_path / "state" / "way-out.log").read_text()
        assert (await made.sh(await made.pod("a"), "exit 0"))[0].code == 0

    async with machine(tmp_path) as made:
        if "pasta" in str(made.capabilities.missing) or NO_WAY_OUT not in str(made.capabilities.missing):
            pytest.skip("pasta is installed")
        await scenario(made)


def test_kernel_accepts_the_masquerading_rule() -> None:
    code = "from localkube.kubelet.sandbox.launcher.kernel.packetrules import masquerade; masquerade(1)"
    tried = subprocess.run(
        ["unshare", "-Urn", sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(str(path) for path in PATHS)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "operation not supported" in tried.stderr:
        pytest.skip("this kernel has no nf_tables")
    assert tried.stderr == ""
