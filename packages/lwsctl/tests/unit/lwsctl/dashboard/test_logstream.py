"""Tests the log lines that the dashboard sends."""

import asyncio

import msgspec
import pytest
from tests import builders
from tests.unit.lwsctl.dashboard.test_pages import snapshot
from tests.unit.lwsctl.model.test_disaggregatedset import part, seen

from kuberuntime.objects.meta import ObjectKey
from lwsctl.dashboard.logstream import LineQueue, LogRequest, parse


@pytest.mark.parametrize(
    ("text", "is_error"), [("KeyError: 'rank'", True), ("joining web-0.web.default, 3 out of 8", False)]
)
def test_line_is_marked_when_it_names_an_error(text: str, *, is_error: bool) -> None:
    lines = LineQueue()
    lines.line({}, f"2026-01-01T00:00:00Z {text}".encode())
    sent = msgspec.json.decode(asyncio.run(lines.read(1)))
    assert (sent["text"], sent.get("error", False)) == (text, is_error)


@pytest.mark.parametrize(
    ("texts", "places"),
    [
        (["1/1"], ["1/1"]),
        (["1/*"], ["1/0", "1/1"]),
        (["*/0"], ["0/0", "1/0"]),
        (["failed"], ["0/1"]),
        (["1/0", "failed"], ["0/1", "1/0"]),
        (["*/*"], ["0/0", "0/1", "1/0", "1/1"]),
    ],
)
def test_ranks_of_logs_are_chosen_by_patterns(texts: list[str], places: list[str]) -> None:
    lws = builders.leaderworkerset_object(replicas=2, size=2)
    leaders = [builders.leader_pod(lws, index, ready=True) for index in range(2)]
    workers = [builders.worker_pod(leader, 1, ready=True) for leader in leaders]
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    workers[0]["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": waiting}]}
    ranks = parse(texts)
    assert ranks is not None
    request = LogRequest(key=ObjectKey("default", "web"), ranks=ranks)
    pods = {"0/0": leaders[0], "0/1": workers[0], "1/0": leaders[1], "1/1": workers[1]}
    assert [place for place, pod in pods.items() if request.covers(pod, request.owners(snapshot()))] == places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("*/0", ["decode/0/0", "new-prefill/0/0", "old-prefill/0/0"]),
        ("prefill/0/0", ["new-prefill/0/0", "old-prefill/0/0"]),
        ("0-old-prefill/*/*", ["old-prefill/0/0"]),
        ("*/0/*", ["decode/0/0", "new-prefill/0/0", "old-prefill/0/0"]),
        ("router/0/0", []),
    ],
)
def test_ranks_of_a_disaggregated_set_are_chosen_by_role(text: str, places: list[str]) -> None:
    whole = seen(part("prefill", 1, revision="old"), part("prefill", 1), part("decode", 1))
    ranks = parse([text])
    assert ranks is not None
    request = LogRequest(key=whole.key, is_disaggregatedset=True, ranks=ranks)
    owners = request.owners(snapshot(*(one for one in whole.parts), sets=[whole]))
    lines = LineQueue(lambda: owners)
    pods = [rank.object or {} for one in whole.parts for group in one.groups for rank in group.ranks]
    for pod in filter(lambda pod: request.covers(pod, owners), pods):
        lines.line(pod, b"2026-01-01T00:00:00Z x")
    if not places:
        assert asyncio.run(lines.read(0.01)) == b"\n"
        return
    sent = asyncio.run(lines.read(1)).splitlines()
    assert sorted(msgspec.json.decode(line)["rank"].removeprefix("0-") for line in sent) == places


@pytest.mark.parametrize("text", ["x", "0", "1/", "/1", "0/1/2", "fail", "1/-1", "..", "*"])
def test_other_words_choose_no_ranks(text: str) -> None:
    assert parse([text]) is None
