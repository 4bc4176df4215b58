"""Tests small pure functions with their examples and further cases."""

import doctest
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.processes import kernelerrors, processtree
from localkube.kubelet.processes.processtree import ProcessInfo
from localkube.kubelet.sandbox import ipam
from localkube.kubelet.sandbox.launcher import stub
from localkube.kubelet.sandbox.launcher.kernel import linuxnamespaces, syscalls


@pytest.mark.parametrize(
    "module",
    [ipam, linuxnamespaces, syscalls, kernelerrors, stub, processtree],
    ids=lambda module: module.__name__,
)
def test_docstring_examples_pass(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def test_malformed_pidfd_info_is_rejected() -> None:
    with pytest.raises(ValueError, match="not a pidfd"):
        syscalls.parse_pid("pos:\t0\n")


@given(st.dictionaries(st.integers(2, 40), st.integers(1, 40)))
def test_descendants_are_found_once_below_the_roots(parents: dict[int, int]) -> None:
    seen = {pid: ProcessInfo("sh", "S", parent, 0, 0, 0) for pid, parent in parents.items()}
    found = processtree.descendants([1], seen)
    assert len(found) == len(set(found))
    assert all(parents[pid] in {1, *found} for pid in found)
    assert not any(parent in {1, *found} and pid not in found for pid, parent in parents.items())


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"GET / HTTP/1.1\r\n", None),
        (b"", None),
        (b"GET / HTTP/1.0\n\n", "GET / HTTP/1.0"),
        (b"\xff / HTTP/1.1\r\n\r\n", "\\xff / HTTP/1.1"),
    ],
)
def test_stub_waits_for_complete_headers(head: bytes, line: str | None) -> None:
    assert stub.read_request_line(head) == line


def test_stub_answers_head_without_a_body() -> None:
    assert stub.response_to("HEAD / HTTP/1.1").endswith(b"\r\n\r\n")
    assert stub.response_to("GET / HTTP/1.1").endswith(b"\r\n\r\nstub\n")
