"""Tests both rendezvous scripts as local processes. `tests/e2e/test_rendezvous.py` tests them in pods."""

import os
import re
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

import leaderworkerset.rendezvous
from leaderworkerset.api import labels
from leaderworkerset.rendezvous.connectionerrors import FailureReason

pytestmark = pytest.mark.slow

SCRIPT: Final = Path(leaderworkerset.rendezvous.__file__).with_name("rendezvous.sh")
SOURCES: Final = SCRIPT.parents[2]
GROUP: Final = {labels.ENV_LEADER_ADDRESS: "127.0.0.1", labels.ENV_GROUP_SIZE: "2", labels.ENV_WORKER_INDEX: "1"}
BARE: Final = ("-S", "-m", "leaderworkerset.rendezvous")
"""The Python options that disable all installed packages."""


def ran(*words: str, path: str = os.environ["PATH"], **group: str) -> "subprocess.CompletedProcess[str]":
    """Run one script until it exits."""
    environment = GROUP | {"PATH": path, "PYTHONPATH": str(SOURCES)} | group
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def python(*words: str, **group: str) -> "subprocess.CompletedProcess[str]":
    return ran(sys.executable, *BARE, *words, **group)


def shell(*words: str, path: str = os.environ["PATH"], **group: str) -> "subprocess.CompletedProcess[str]":
    return ran(str(shutil.which("sh")), str(SCRIPT), *words, path=path, **group)


def test_shell_form_has_the_same_codes_texts_and_advice() -> None:
    """An exit code that the reference does not describe is explained in the script."""
    text = SCRIPT.read_text()
    said = [
        dict(re.findall(r"^    (8\d)\) echo \"(.*)\" ;;$", part, re.MULTILINE)) for part in text.split("advice_of()")
    ]
    assert said[1] == {str(one.value): one.advice for one in FailureReason}
    assert said[0] == {str(one): FailureReason(int(one)).description for one in said[0]}
    assert {str(one.value) for one in FailureReason} - set(said[0]) == {
        str(one.value) for one in (FailureReason.WRONG_SIZE, FailureReason.NO_GROUP, FailureReason.NO_TOOLS)
    }


@pytest.mark.parametrize("form", [python, shell])
def test_rank_meets_the_leader_with_the_standard_library(form: object) -> None:
    assert callable(form)
    with socket.create_server(("127.0.0.1", 0)) as leader:
        port = str(leader.getsockname()[1])
        result = form("leader", "--port", port, "--size", "2", "--timeout", "60")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("rendezvous: rank 1 reached leader after ")


NETCATS: Final = (
    ("Options:\\n\\t-w SEC\\tTimeout\\n\\t-z\\tZero-I/O mode", '"$*" = "-v -z -w 2 127.0.0.1 80"'),
    ("\\t-w SEC\\tConnect timeout\\n\\t-e PROG\\tRun PROG", '"$*" = "-w 2 127.0.0.1 80 -e true"'),
)
"""The help of nc in Alpine's busybox, full netcats, and Debian's busybox, with the accepted arguments."""


@pytest.mark.parametrize(("usage", "accepted"), NETCATS, ids=["alpine", "debian"])
@pytest.mark.parametrize(("output", "code"), [("", 0), ("Connection refused", FailureReason.CLOSED)])
def test_shell_form_uses_the_options_of_each_netcat(
    tmp_path: Path, usage: str, accepted: str, output: str, code: int
) -> None:
    for name in ("date", "sleep", "getent"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    exits = f"echo '{output}'; exit {1 if output else 0}"
    (tmp_path / "nc").write_text(f"#!/bin/sh\n[ {accepted} ] && {{ {exits}; }}\nprintf '{usage}\\n' >&2; exit 1\n")
    (tmp_path / "nc").chmod(0o755)
    result = shell("leader", "--port", "80", "--timeout", "1", path=str(tmp_path))
    assert result.returncode == code, result.stderr


@pytest.mark.skipif(not shutil.which("busybox"), reason="no busybox")
def test_shell_form_meets_a_port_by_the_busybox_of_this_machine(tmp_path: Path) -> None:
    for name in ("date", "sleep", "true", "nc"):
        (tmp_path / name).symlink_to(str(shutil.which("busybox")))
    (tmp_path / "getent").symlink_to(str(shutil.which("getent")))
    with socket.create_server(("127.0.0.1", 0)) as leader:
        port = str(leader.getsockname()[1])
        result = shell("leader", "--port", port, "--timeout", "10", path=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert shell("leader", "--port", port, "--timeout", "1", path=str(tmp_path)).returncode == FailureReason.CLOSED


@pytest.mark.parametrize("form", [python, shell])
@pytest.mark.parametrize(
    "words",
    [
        "",
        "everybody",
        "leader --port",
        "leader --port 0",
        "leader --port 65536",
        "leader --port http",
        "leader --size 0",
        "leader --size 12345678901",
        "leader --timeout 0",
        "leader --timeout 604801",
        "leader --until 3",
    ],
)
def test_invalid_arguments_exit_with_2(form: object, words: str) -> None:
    assert callable(form)
    result = form(*words.split())
    assert result.returncode == 2
    assert "usage: " in result.stderr


def test_python_prints_the_shell_form() -> None:
    assert python("shell").stdout == SCRIPT.read_text()


def test_invalid_dns_name_does_not_exist() -> None:
    result = python("leader", "--timeout", "0.2", LWS_LEADER_ADDRESS=f"{'a' * 64}.web.prod")
    assert result.returncode == FailureReason.NO_NAME, result.stderr


def test_hanging_lookup_fails_at_the_deadline(tmp_path: Path) -> None:
    """`sitecustomize`, which Python imports on start, makes lookups hang as if there were no response."""
    (tmp_path / "sitecustomize.py").write_text(
        "import socket, time\nsocket.getaddrinfo = lambda *_: time.sleep(1000)\n"
    )
    environment = GROUP | {"PYTHONPATH": f"{tmp_path}:{SOURCES}"}
    words = [sys.executable, "-m", "leaderworkerset.rendezvous", "all", "--timeout", "0.2"]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == FailureReason.NO_DNS, result.stderr


@pytest.mark.parametrize("number", ["", "-1", "two", "1234567890", "\u0663"])
def test_size_that_is_not_a_number_is_an_error(number: str) -> None:
    for form in (python, shell):
        result = form("leader", LWS_GROUP_SIZE=number)
        assert result.returncode == FailureReason.NO_GROUP, result.stderr


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (("getent", "nslookup"), "getent and nslookup are not installed"),
        (("bash", "nc"), "neither nc nor bash with timeout is installed"),
    ],
)
def test_missing_shell_tools_are_named(tmp_path: Path, missing: tuple[str, ...], words: str) -> None:
    kept = {"date", "sleep", "getent", "bash", "timeout"} - {*missing}
    for name in kept:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    result = shell("leader", "--port", "80", path=str(tmp_path))
    assert f"rendezvous: {words} (exit code 87)" in result.stderr
    assert result.returncode == FailureReason.NO_TOOLS


NSLOOKUP: Final = (
    ("** server can't find web-0.web.prod: NXDOMAIN", 1, FailureReason.NO_NAME),
    ("*** Can't find web-0.web.prod: No answer", 0, FailureReason.NO_ADDRESS),
    ("*** Can't find web-0.web.prod: No answer", 1, FailureReason.NO_ADDRESS),
    ("Name: web-0.web.prod\ntext = hello", 0, FailureReason.NO_ADDRESS),
    (";; connection timed out; no servers could be reached", 1, FailureReason.NO_DNS),
    ("** server can't find web-0.web.prod: SERVFAIL", 1, FailureReason.NO_DNS),
)
"""The output and exit codes of nslookup in BIND and busybox, and their meaning. Few developers have it installed."""


def test_shell_form_parses_the_output_of_nslookup(tmp_path: Path) -> None:
    """All cases run concurrently, because each of them waits for one second."""

    def told(number: int) -> tuple[int, list[str]]:
        said, code, _ = NSLOOKUP[number]
        programs = tmp_path / str(number)
        programs.mkdir()
        for name, text in (("getent", "exit 2"), ("nslookup", f"cat <<'END'\n{said}\nEND\nexit {code}")):
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        result = shell("leader", "--timeout", "1", path=path, LWS_LEADER_ADDRESS="web-0.web.prod")
        return result.returncode, re.findall(
            r"the leader \(web-0\.web\.prod\) did not respond within 1 s: (.*) \(", result.stderr
        )

    with ThreadPoolExecutor(len(NSLOOKUP)) as threads:
        results = list(threads.map(told, range(len(NSLOOKUP))))
    assert results == [(obstacle, [obstacle.description]) for _, _, obstacle in NSLOOKUP]


BUSYBOX: Final = """#!/bin/sh
if [ "$1" = web-0.web.prod.svc.example.org ]; then
    printf 'Server:\\t10.96.0.10\\nAddress:\\t10.96.0.10:53\\n\\nName:\\t%s\\nAddress: 10.0.0.7\\n\\n' "$1"
    printf "*** Can't find %s: No answer\\n" "$1"
    exit 0
fi
printf "Server:\\t10.96.0.10\\nAddress:\\t10.96.0.10:53\\n\\n** server can't find %s: NXDOMAIN\\n" "$1"
exit 1
"""
"""The output of busybox nslookup, which ignores the search list and requests addresses of both families."""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("search", "code"),
    [("prod.svc.example.org svc.example.org example.org", 0), ("example.org", FailureReason.NO_NAME)],
    ids=["pod", "no cluster"],
)
def test_shell_form_asks_for_the_full_name_without_getent(tmp_path: Path, search: str, code: int) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("date", "sleep"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "nslookup").write_text(BUSYBOX)
    (programs / "nslookup").chmod(0o755)
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver 10.96.0.10\nsearch {search}\noptions ndots:5\n")
    enter = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")
    script = 'mount --bind "$0" /etc/resolv.conf; export PATH="$1"; exec /bin/sh "$2" leader --timeout 1'
    group = GROUP | {labels.ENV_LEADER_ADDRESS: "web-0.web.prod", "PATH": os.environ["PATH"]}
    words = (*enter, script, str(resolver), str(programs), str(SCRIPT))
    result = subprocess.run(words, env=group, capture_output=True, text=True, check=False)
    assert result.returncode == code, result.stderr
