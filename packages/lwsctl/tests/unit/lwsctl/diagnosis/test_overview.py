"""Tests the overview of a namespace: the worst workload is first, and healthy workloads share a line."""

from lwsctl.diagnosis.document import BLOCKS, NAMES, document, overview_lines, sort_by_urgency
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict


def told(name: str, verdict: Verdict = Verdict.HEALTHY, *, owner: str = "", namespace: str = "prod") -> Diagnosis:
    code = "LWS-E036" if verdict is Verdict.STUCK else ""
    return Diagnosis(
        target=name,
        verdict=verdict,
        sentence="so it is",
        code=code,
        evidence=("seen",) if code else (),
        owner=owner,
        namespace=namespace,
    )


def test_worst_is_first_and_the_healthy_share_a_line() -> None:
    found = sort_by_urgency(
        [told("a"), told("b", Verdict.PROGRESSING), told("c", Verdict.STUCK), told("d"), told("e", Verdict.UNKNOWN)]
    )
    assert overview_lines(found) == [
        "c is stuck (LWS-E036): so it is",
        "",
        "Evidence:",
        "  seen",
        "",
        "e is not ready: so it is",
        "",
        "b is progressing: so it is",
        "",
        "2 of 5 sets healthy: a, d",
    ]


def test_disaggregated_set_is_one_block_with_its_parts() -> None:
    parts = [told("s-0-prefill", owner="s"), told("s-0-decode", Verdict.STUCK, owner="s")]
    found = sort_by_urgency([told("s", Verdict.PROGRESSING), *parts, told("t-0-decode", owner="t", namespace="test")])
    assert overview_lines(found, with_namespace=True) == [
        "namespace prod: s: s-0-decode is stuck (LWS-E036): so it is",
        "",
        "Evidence:",
        "  seen",
        "",
        "Other LeaderWorkerSets of s:",
        "  s-0-prefill is healthy: so it is",
        "",
        "namespace prod: s is progressing: so it is",
        "",
        "1 of 3 sets healthy: t (test)",
    ]


def test_overview_of_hundreds_is_bounded() -> None:
    many = sort_by_urgency(
        told(f"{verdict[0]}{index:03}", verdict) for verdict in (Verdict.HEALTHY, Verdict.STUCK) for index in range(250)
    )
    assert [one.target for one in many[:2]] == ["s000", "s001"]
    lines = overview_lines(many)
    assert lines.count("Evidence:") == BLOCKS
    others = lines.index("Others:")
    assert lines[others + 1 :][: 250 - BLOCKS] == [
        f"  s{index:03} is stuck (LWS-E036): so it is" for index in range(BLOCKS, 250)
    ]
    assert lines[-1].startswith("250 of 500 sets healthy: h000, ")
    assert lines[-1].endswith(f"and {250 - NAMES} more")


def test_healthy_sets_are_one_line() -> None:
    assert overview_lines([told("a")]) == ["1 of 1 set healthy: a"]
    assert overview_lines([]) == []
    assert sort_by_urgency([]) == []


def test_document_has_the_namespace_and_the_owner() -> None:
    (item,) = document([told("s-0-decode", owner="s")])["items"]
    assert (item["namespace"], item["disaggregatedSet"], item["target"]) == ("prod", "s", "s-0-decode")
