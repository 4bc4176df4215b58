"""Tests the diagnosis of runs in deleted pods, based on the latest episode and its logs."""

import pytest
from msgspec.structs import replace
from tests.explanations.builders import recreated
from tests.unit.lwsctl.diagnosis.test_diagnose import told

from leaderworkerset.api.episode import Episode, Outcome, RecordedContainer, RecordedRank, RunTermination
from lwsctl.diagnosis.logerrors import NO_LINES
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.observation.evidence import RunLines, with_run_lines
from lwsctl.observation.recordedruns import recorded_lines

ERROR = "ValueError: no free KV cache blocks"
OTHER = "OSError: no such model"


def episode(number: int, *logs: tuple[str, ...], code: int = 1, pod: str = "web-0-1") -> Episode:
    """Return an episode of a container with these logs, oldest first."""
    container = RecordedContainer(name="main", restarts=1, ends=(RunTermination(exit_code=code),), logs=logs)
    return Episode(
        namespace="prod",
        lws="web",
        group="0",
        number=number,
        outcome=Outcome.RECREATED,
        time=f"2026-01-01T11:59:{number:02}Z",
        ranks=(RecordedRank(rank=1, pod=pod, containers=(container,)),),
    )


def with_episodes(diagnosis: Diagnosis, episodes: list[Episode]) -> Diagnosis:
    """Return the diagnosis, which uses the episode of the run if there is one."""
    run = diagnosis.recorded
    lines = () if run is None else recorded_lines(episodes, run)
    return with_run_lines(diagnosis, RunLines(run.pod, run.container, lines) if run is not None and lines else None)


@pytest.mark.parametrize("failure", ["main: exit code 1, Error", "main: exit code 1, Error, last line: bye"])
def test_recorded_run_is_judged_from_its_episode(failure: str) -> None:
    plain = told(recreated([], failure=failure))
    found = with_episodes(plain, [episode(2, ("loaded", ERROR, "bye"), ("started again",)), episode(1, (OTHER,))])
    assert found.sentence == f"container main of pod web-0-1 crashed with exit code 1 (Error): {ERROR}"
    assert "the last lines of web-0-1, container main:" in found.evidence
    assert f"  {ERROR}" in found.evidence
    assert not any(step.startswith(NO_LINES) for step in found.steps)
    assert with_episodes(found, [episode(3, (OTHER,))]) == found


@pytest.mark.parametrize(
    "other",
    [episode(1, (ERROR,), code=3), episode(1, (ERROR,), pod="web-0"), episode(1)],
    ids=["another exit code", "another pod", "no log"],
)
def test_episode_of_a_different_run_is_not_evidence(other: Episode) -> None:
    plain = told(recreated([], failure="main: exit code 1, Error"))
    assert with_episodes(plain, [other]) == plain


def test_known_error_of_a_record_is_kept() -> None:
    plain = told(recreated([], failure=f"main: exit code 1, Error: {ERROR}"))
    assert plain.recorded is None
    assert with_episodes(plain, [episode(1, (OTHER,))]) == plain


@pytest.mark.parametrize(
    ("kubectl", "failure", "kept"),
    [
        ("kubectl", "main: exit code 1, Error", False),
        ("kubectl", f"main: exit code 1, Error: {ERROR}", True),
        ("", "main: exit code 1, Error", True),
    ],
)
def test_without_any_line_of_a_run_a_step_names_what_keeps_them(kubectl: str, failure: str, kept: bool) -> None:
    """A local cluster stores all logs."""
    steps = told(replace(recreated([], failure=failure), commands=Commands(kubectl=kubectl))).steps
    assert any(step == f"{NO_LINES}main" for step in steps) is not kept
