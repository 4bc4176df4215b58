"""Tests logs, commands and files, which require processes, on the embedded cluster."""

import pytest
from tests.kubernetes.kubectl.conftest import SECONDS, Place
from tests.kubernetes.kubectl.objects import pod


@pytest.fixture
def talker(place: Place) -> Place:
    """Return a namespace on the embedded cluster that contains the running pod `talker`."""
    if place.name != "embedded":
        pytest.skip("kwok runs no processes")
    place.apply(pod())
    place.run("wait", "--for=condition=Ready", "pod/talker", "--timeout=30s")
    return place


def test_logs_are_read_and_followed(talker: Place) -> None:
    assert talker.shows("world", "logs", "talker").split() == ["hello", "world"]
    assert talker.run("logs", "talker", "--tail=1").split() == ["world"]
    assert talker.run("logs", "-l", "app=talker", "--prefix").startswith("[pod/talker/main] hello")
    follower = talker.start("logs", "-f", "talker")
    assert follower.stdout is not None
    assert [follower.stdout.readline().strip() for _ in range(2)] == ["hello", "world"]
    talker.run("delete", "pod", "talker", "--now")
    follower.communicate(timeout=SECONDS)
    assert follower.returncode == 0


def test_commands_run_inside_the_container(talker: Place) -> None:
    assert talker.run("exec", "talker", "--", "echo", "hi").strip() == "hi"
    assert talker.run("exec", "-i", "talker", "--", "cat", text="some\ntext").startswith("some\ntext")
    assert "exit code 3" in talker.run("exec", "talker", "--", "sh", "-c", "exit 3", code=3)
    assert "not found" in talker.run("exec", "absent", "--", "true", code=1)
    assert "container absent is not valid" in talker.run("exec", "talker", "-c", "absent", "--", "true", code=1)
    assert 'exec: "absent": executable file not found' in talker.run("exec", "talker", "--", "absent", code=1)


def test_attach_shows_output_until_the_container_ends(talker: Place) -> None:
    script = "while :; do echo tick; echo tock >&2; sleep 0.2; done"
    ticking = {"name": "main", "image": "app:1", "command": ["sh", "-c", script]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [ticking]}
    talker.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "clock"}, "spec": spec})
    talker.run("wait", "--for=condition=Ready", "pod/clock", "--timeout=30s")
    attached = talker.start("attach", "clock")
    assert attached.stdout is not None
    lines = iter(attached.stdout.readline, "")
    assert {"tick\n", "tock\n"} <= {next(lines) for _ in range(8)}
    talker.run("delete", "pod", "clock", "--now")
    attached.communicate(timeout=SECONDS)
    assert attached.returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("attach", "-i", "talker"), "containers do not have standard input on a local cluster"),
        (("debug", "talker", "--image=x"), "the embedded cluster does not serve pods/ephemeralcontainers"),
        (("get", "daemonsets"), 'the server doesn\'t have a resource type "daemonsets"'),
    ],
)
def test_unsupported_command_is_rejected_with_a_reason(talker: Place, words: tuple[str, ...], told: str) -> None:
    assert told in talker.run(*words, code=1)
