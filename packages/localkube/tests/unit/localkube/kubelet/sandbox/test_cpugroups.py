"""Tests the cgroups that limit CPU time with directories that resemble the cgroup file system."""

import os
from pathlib import Path

import pytest

from localkube.kubelet.sandbox import cpugroups
from localkube.kubelet.sandbox.cpugroups import CpuGroups, Parent

MOUNTS = (
    "24 1 0:20 / /proc rw,nosuid - proc proc rw\n"
    "31 1 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    "32 1 0:28 /docker/a /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 1 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)


def test_groups_around_a_process_are_tried_from_the_nearest() -> None:
    own = "4:cpu,cpuacct:/docker/a/b\n3:cpuset:/\n0::/user.slice/session\n"
    assert [*cpugroups.parent_groups(MOUNTS, own)] == [
        Parent(Path("/sys/fs/cgroup/user.slice/session"), 2),
        Parent(Path("/sys/fs/cgroup/user.slice"), 2),
        Parent(Path("/sys/fs/cgroup"), 2),
        Parent(Path("/sys/fs/cgroup/cpu,cpuacct/b"), 1),
    ]


def test_group_outside_of_the_own_mounts_is_not_tried() -> None:
    assert [*cpugroups.parent_groups(MOUNTS, "4:cpu,cpuacct:/other\n0::/../up\n")] == []


@pytest.mark.parametrize(("control", "usable"), [("cpuset cpu memory", True), ("memory pids", False), (None, False)])
def test_group_is_used_if_its_children_have_the_controller(tmp_path: Path, control: str | None, usable: bool) -> None:
    (tmp_path / "cgroup.procs").touch()
    if control is not None:
        (tmp_path / "cgroup.subtree_control").write_text(control)
    assert Parent(tmp_path, 2).is_usable is usable


@pytest.mark.parametrize(
    ("version", "limited", "unlimited"),
    [
        (2, {"cpu.max": "150000 100000"}, {"cpu.max": "max 100000"}),
        (
            1,
            {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
            {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1"},
        ),
    ],
)
def test_container_has_a_group_with_its_limit(
    tmp_path: Path, version: int, limited: dict[str, str], unlimited: dict[str, str]
) -> None:
    groups, pid = CpuGroups(Parent(tmp_path, version)), os.getpid()
    (top,) = tmp_path.iterdir()
    groups.limit(pid, 1.5)
    expected = {path.name: path.read_text() for path in (top / str(pid)).iterdir()}
    assert {name: expected[name] for name in limited} == limited
    assert expected["cgroup.procs"].isdigit()
    groups.limit(pid, 0)
    assert {name: (top / str(pid) / name).read_text() for name in unlimited} == unlimited


def test_share_below_the_least_of_the_kernel_is_rounded_up(tmp_path: Path) -> None:
    groups = CpuGroups(Parent(tmp_path, 2))
    groups.limit(os.getpid(), 0.001)
    (file,) = tmp_path.glob(f"*/{os.getpid()}/cpu.max")
    assert file.read_text() == "1000 100000"


def test_machine_without_cgroups_has_no_limits(tmp_path: Path) -> None:
    assert cpugroups.find_groups(str(tmp_path)) is None
