"""Tests that a pod has a separate host name, address, process tree and hosts file."""

import asyncio
import os

import pytest
from tests.integration.sandbox.harness import Machine

from localkube.kubelet.processes.runner import StartError

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


async def test_pod_has_its_own_hostname_address_and_processes(made: Machine) -> None:
    pod = await made.pod("train-0-1")
    end, output = await made.sh(pod, "hostname; cat /etc/hostname; ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm")
    assert end.code == 0
    assert output.splitlines()[:2] == ["train-0-1", "train-0-1"]
    assert int(output.splitlines()[2]) <= 5
    assert output.splitlines()[3] == "kube-init"
    assert made.addresses[pod].startswith("10.88.")
    _, links = await made.sh(pod, "ls /sys/class/net")
    assert links.split() == ["eth0", "lo"]


async def test_programs_run_as_the_user_of_the_cluster(made: Machine) -> None:
    _, output = await made.sh(await made.pod("a"), "id -u; id -g")
    assert output.split() == [str(os.geteuid()), str(os.getegid())]


@pytest.mark.skipif(os.geteuid() != 0, reason="Remove runAsUser and runAsGroup, or run the cluster as root")
async def test_root_can_run_a_process_as_a_different_user(made: Machine) -> None:
    made.write_hosts("9.9.9.9 elsewhere\n")
    made.hosts.chmod(0o755)
    (made.hosts / "hosts").chmod(0o644)
    _, output = await made.sh(await made.pod("a"), "id -u; id -g; cat /etc/hosts", run_as_user=1234, run_as_group=4321)
    assert output.splitlines() == ["1234", "4321", "9.9.9.9 elsewhere"]


async def test_root_programs_have_only_container_capabilities(made: Machine) -> None:
    end, _ = await made.sh(await made.pod("a"), "mount -t tmpfs none /mnt")
    assert end.code != 0
    end, _ = await made.sh("a", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    assert end.code != 0


async def test_running_containers_see_the_newest_hosts_file(made: Machine) -> None:
    pod = await made.pod("a")
    program = await made.start(pod, "sleep", "600")
    for number in range(5):
        made.write_hosts(f"10.0.0.{number} peer\n")
        command = await made.exec(program, "cat", "/etc/hosts")
        assert await command.line() == f"10.0.0.{number} peer"
        _, fresh = await made.sh(pod, "cat /etc/hosts")
        assert fresh == f"10.0.0.{number} peer\n"


async def test_hosts_file_is_replaced_atomically(made: Machine) -> None:
    reader = "import time\nend=time.time()+0.5\nwhile time.time()<end:\n n=len(open('/etc/hosts').read())\n assert n==80000, n\n"
    made.write_hosts("x" * 80000)
    program = await made.start(await made.pod("a"), "python3", "-c", reader)
    while not program.ended.done():
        made.write_hosts("y" * 80000)
        await asyncio.sleep(0)
    end, output = await program.finish()
    assert (end.code, output) == (0, "")


async def test_shared_process_namespace_shows_all_containers(made: Machine) -> None:
    pod = await made.pod("a", share_process_namespace=True)
    await made.start(pod, "sleep", "543")
    _, output = await made.sh(pod, "cat /proc/1/comm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert output.startswith("kube-pod\n")
    assert "sleep 543" in output


async def test_environment_and_directory_are_set(made: Machine) -> None:
    end, output = await made.sh(
        await made.pod("a"),
        "env | grep -v ^_= | grep -v ^PWD= | sort; pwd",
        env={"LWS_GROUP_SIZE": "4"},
        cwd="/usr",
    )
    assert end.code == 0
    assert output.splitlines()[0] == "LWS_GROUP_SIZE=4"
    assert output.splitlines()[1].startswith("PATH=")
    assert output.splitlines()[2:] == ["/usr"]


@pytest.mark.parametrize(
    ("argv", "options", "words"),
    [
        (("no-such-program",), {}, 'exec: "no-such-program": executable file not found in $PATH'),
        (("/no/such",), {}, 'exec: "/no/such": no such file or directory'),
        (("/etc/passwd",), {}, 'exec: "/etc/passwd": permission denied'),
        (("true",), {"cwd": "/no/where"}, "chdir /no/where: no such file or directory"),
    ],
    ids=["not-in-path", "no-such-file", "not-executable", "no-directory"],
)
async def test_program_that_cannot_start_is_named(
    made: Machine, argv: tuple[str, ...], options: dict[str, object], words: str
) -> None:
    with pytest.raises(StartError) as caught:
        await made.start(await made.pod("a"), *argv, **options)
    assert words in str(caught.value)
