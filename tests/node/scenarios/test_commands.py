"""Tests commands that access containers through the API server and a real kubelet."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.cluster import NodeCluster
from tests.node.conftest import namespace
from tests.node.objects import WAIT, container, leaderworkerset, pod
from tests.node.place import LWS, Place

SERVE = f"mkdir -p /tmp/www; hostname > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; echo serving; {WAIT}"
COUNT = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done"


@pytest.fixture(scope="module")
def web(nodes: NodeCluster) -> Iterator[Place]:
    """Run two groups of two pods that serve their names, for all tests that do not change them."""
    with namespace(nodes) as place:
        place.ready(leaderworkerset("web", pod(container(SERVE)), replicas=2), 4)
        yield place


def test_lws_exec_runs_a_program_in_a_rank(web: Place) -> None:
    assert web.lws("exec", "web/1/1", "--", "hostname") == "web-1-1\n"


def test_lws_exec_returns_the_exit_code(web: Place) -> None:
    web.lws("exec", "web/0/1", "--", "sh", "-c", "exit 7", code=7)


def test_lws_exec_passes_standard_input(web: Place) -> None:
    assert web.lws("exec", "-i", "web/0/0", "--", "cat", text="typed\n") == "typed\n"


def test_kubectl_exec_runs_a_program_in_a_rank(web: Place) -> None:
    assert web.exec("web-0-1", "hostname") == "web-0-1\n"


def test_lws_cp_copies_to_ranks_and_back(web: Place, tmp_path: Path) -> None:
    sent, received = tmp_path / "sent.txt", tmp_path / "received.txt"
    sent.write_text("sent " * 100_000)
    web.lws("cp", str(sent), "web/0:/tmp/sent.txt")
    web.lws("cp", "web/0/1:/tmp/sent.txt", str(received))
    assert received.read_text() == sent.read_text()


def test_lws_cp_names_a_file_that_is_absent(web: Place, tmp_path: Path) -> None:
    assert "absent: No such file" in web.lws("cp", "web/0/1:/tmp/absent", str(tmp_path / "it"), code=1)


def test_lws_port_forward_reaches_a_rank(web: Place) -> None:
    port = "18080"
    with web.running([*LWS, "port-forward", "--namespace", web.name, "web/1/1", f"{port}:8080"]):
        web.until(lambda: fetch(web, port) == "web-1-1\n", "the page of rank 1 of group 1")


def test_lws_logs_shows_all_ranks(web: Place) -> None:
    assert sorted(web.lws("logs", "web").splitlines()) == [
        f"{group}/{rank} serving" for group in (0, 1) for rank in (0, 1)
    ]


def test_lws_logs_follows_ranks(place: Place) -> None:
    place.ready(leaderworkerset("counting", pod(container(COUNT))), 2)
    with place.running([*LWS, "logs", "--namespace", place.name, "--follow", "counting"]) as process:
        assert process.stdout is not None
        seen: set[str] = set()
        for line in process.stdout:
            seen.add(line.strip())
            if {"0 line 30", "1 line 30"} <= seen or {"0/0 line 30", "0/1 line 30"} <= seen:
                break
        else:
            raise AssertionError(f"the command ended by itself: {sorted(seen)[-5:]}")


def test_kubectl_attach_shows_output_of_a_rank(place: Place) -> None:
    place.ready(leaderworkerset("counting", pod(container(COUNT))), 2)
    with place.running(["kubectl", "attach", "--namespace", place.name, "counting-0-1"]) as process:
        assert process.stdout is not None
        assert any(line.startswith("line ") for line in process.stdout)


def test_lws_logs_previous_shows_the_previous_run(place: Place) -> None:
    script = f"echo run $(cat /kept/runs 2>/dev/null); echo again >> /kept/runs; {WAIT}"
    template = pod(container(script, mounts={"kept": "/kept"}), volumes=[{"name": "kept", "emptyDir": {}}])
    place.ready(leaderworkerset("again", template, restartPolicy="None"), 2)
    place.terminate("again-0-1")
    place.until(lambda: "again" in place.kubectl("logs", "again-0-1"), "the second run")
    assert "again" in place.lws("logs", "again/0/1")
    assert "again" not in place.lws("logs", "again/0/1", "--previous")


def fetch(place: Place, port: str) -> str:
    """Return the page at a port of the first node."""
    code = (
        f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/', timeout=5).read().decode(), end='')"
    )
    with place.running(["python3", "-c", code]) as process:
        return process.communicate()[0]
