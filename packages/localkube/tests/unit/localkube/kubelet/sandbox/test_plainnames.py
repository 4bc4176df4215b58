"""Tests pod names that processes without namespaces use.

The names are in variables and in the Python resolver, or the executable remains unchanged.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from localkube.kubelet.sandbox import plainnames
from localkube.kubelet.sandbox.plainnames import with_names
from localkube.kubelet.sandbox.resolver import sitecustomize
from localkube.kubelet.sandbox.resolver.sitecustomize import HostsFile

HOSTS = "127.0.0.1 localhost\n127.9.0.4 web-0.web.default web-0  # the leader\n\n127.9.0.5 web-0-1.web.default\n"


@pytest.fixture(name="hosts")
def hosts_file(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text(HOSTS)
    return tmp_path / "hosts"


def test_names_are_found_like_by_a_resolver(hosts: Path) -> None:
    names = HostsFile(str(hosts))
    for name in ("web-0", "WEB-0.web.default", "web-0.web.default.", b"web-0"):
        assert names.address(name) == "127.9.0.4"
    for other in ("web-1", "", None, 7, b"\xff", "# the"):
        assert names.address(other) is other


def test_replaced_file_is_read_and_removed_file_remembered(hosts: Path) -> None:
    names = HostsFile(str(hosts))
    assert names.address("web-1") == "web-1"
    fresh = hosts.with_name("new")
    fresh.write_text("127.9.0.9 web-1\n")
    fresh.replace(hosts)
    assert (names.address("web-1"), names.address("web-0")) == ("127.9.0.9", "web-0")
    hosts.unlink()
    assert names.address("web-1") == "127.9.0.9"


def test_functions_and_sockets_accept_names(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*sitecustomize.HOST_FIRST, "gethostname"):
        monkeypatch.setattr(socket, name, getattr(socket, name))
    for name in sitecustomize.ADDRESS_LAST:
        monkeypatch.setattr(socket.socket, name, getattr(socket.socket, name))
    sitecustomize.install(HostsFile(str(hosts)), "web-0")
    assert socket.gethostname() == "web-0"
    assert socket.gethostbyname("web-0-1.web.default") == "127.9.0.5"
    found = socket.getaddrinfo("web-0", 80, type=socket.SOCK_STREAM)
    assert [one[4] for one in found] == [("127.9.0.4", 80)]
    with socket.socket() as server, socket.socket() as client:
        server.bind(("web-0", 0))
        server.listen()
        client.connect(("web-0", server.getsockname()[1]))
        assert client.getpeername() == server.getsockname()
        assert server.getsockname()[0] == "127.9.0.4"
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
        one.bind(("web-0", 0))
        other.sendto(b"x", ("web-0", one.getsockname()[1]))
        assert one.recv(1) == b"x"
        with pytest.raises(TypeError):
            other.connect()  # type: ignore[call-arg]


def test_sockets_of_other_families_are_unchanged(hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in sitecustomize.ADDRESS_LAST:
        monkeypatch.setattr(socket.socket, name, getattr(socket.socket, name))
    monkeypatch.setattr(sitecustomize, "HOST_FIRST", ())
    sitecustomize.install(HostsFile(str(hosts)), "")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("web-0")
        assert Path("web-0").is_socket()


def test_absent_variable_adds_no_empty_entry(hosts: Path) -> None:
    """An empty entry in PYTHONPATH or LD_PRELOAD would refer to the working directory."""
    found = with_names({"PATH": "/bin"}, hosts, "web-0", None)
    assert found["PYTHONPATH"] == str(plainnames.RESOLVER)
    assert "LD_PRELOAD" not in found
    assert with_names({"LD_PRELOAD": "a.so"}, hosts, "web-0", "b.so")["LD_PRELOAD"] == "b.so:a.so"


def test_program_resolves_names_and_keeps_its_customization(hosts: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import socket\nprint('customized', socket.gethostbyname('web-0'))\n")
    env = with_names(dict(os.environ) | {"PYTHONPATH": str(own)}, hosts, "web-0", None)
    program = "import socket; print(socket.gethostname(), socket.gethostbyname('web-0-1.web.default'))"
    found = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["customized 127.9.0.4", "web-0 127.9.0.5"]
    assert found.stderr == ""


def test_missing_variable_changes_nothing(hosts: Path) -> None:
    env = with_names(dict(os.environ), hosts, "web-0", None)
    del env[sitecustomize.HOSTS]
    program = "import socket; print(socket.getaddrinfo.__module__, hasattr(socket.getaddrinfo, '__wrapped__'))"
    found = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert found.stdout == "socket False\n"


def test_library_unknown_to_the_loader_is_not_used() -> None:
    """`libc.so.6` represents an installed library."""
    assert plainnames.find_wrapper(["libno_such_wrapper.so"]) is None
    assert plainnames.find_wrapper(["libno_such_wrapper.so", "libc.so.6"]) == "libc.so.6"


def test_machine_without_programs_has_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert plainnames.find_wrapper() is None
