"""Tests the errors, causes and next steps of thirty failing programs, from full logs and from their ends."""

from collections.abc import Callable, Mapping

import pytest
from tests.explanations.builders import NOW, container, ended, observed, placed, ready
from tests.explanations.failinglogs import FailingLog, programs

from kuberuntime.objects import errorlines, meta, podstate
from kuberuntime.texts.masking import Mask
from leaderworkerset.recording.episodebuilder import GroupObservation, Logs, build
from lwsctl.cli.views import episodetable
from lwsctl.diagnosis import document, logerrors
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.views.selection import Selection

PROGRAMS = [*programs()]


def test_table_has_thirty_programs_with_long_logs() -> None:
    assert len({program.name for program in PROGRAMS}) >= 30
    assert min(len(program.lines) for program in PROGRAMS) >= 100


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_first_and_last_error_of_a_log_are_named(program: FailingLog) -> None:
    assert errorlines.first_error(program.lines) == program.error
    assert errorlines.first_error(program.lines[-errorlines.JUDGED :]) == program.error


@pytest.mark.parametrize("most", [1, 5, 10])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_excerpt_of_a_log_has_its_first_error(program: FailingLog, most: int) -> None:
    lines = errorlines.error_excerpt(program.lines, most)
    assert errorlines.first_error(lines)[:2] == program.error[:2]
    assert len(lines) <= most + 2


def crashed(program: FailingLog, message: str) -> Observed:
    """Return a group whose leader failed with the program's exit code and this termination message."""
    reason = "OOMKilled" if program.cause == "LWS-E070" else "Error"
    end = ended(program.exit_code, 10, reason=reason, message=message)
    return observed([placed(status={"containerStatuses": [container(terminated=end)]}), ready(0, 1)])


def diagnosed(program: FailingLog, message: str) -> Diagnosis:
    """Return the diagnosis from a message, and from the log if the diagnosis requests it."""
    diagnosis = diagnose(crashed(program, message), Selection("web"))
    if (log := diagnosis.log) is None:
        return diagnosis
    return logerrors.with_lines(diagnosis, meta.name(log.pod), log.container, program.lines[-errorlines.JUDGED :])


MESSAGES: Mapping[str, Callable[[FailingLog], str]] = {
    "quoted": lambda program: "\n".join(errorlines.error_excerpt(program.lines, 10)),
    "end of the log": lambda program: "\n".join(program.lines[-80:])[-2048:],
    "no message": lambda _: "",
}


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_explain_names_cause_error_and_step(program: FailingLog, message: str) -> None:
    diagnosis = diagnosed(program, MESSAGES[message](program))
    screen = "\n".join(document.lines(diagnosis))
    first, last = (" ".join(line.split())[:200] for line in (program.error.line, program.error.last))
    assert diagnosis.code == program.cause
    assert any(program.step in step for step in diagnosis.steps), diagnosis.steps
    if program.error.is_certain:
        assert f": {first}" in diagnosis.sentence
        assert first in screen.split("Evidence:")[1]
        assert (f"; last error: {last[:50]}" if last else "") in diagnosis.sentence


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_recorder_and_get_name_the_same_error(program: FailingLog) -> None:
    (leader, _) = crashed(program, "").view.pods
    status = container(restarts=1, last=ended(program.exit_code, 10), waiting={"reason": "CrashLoopBackOff"})
    pod = leader | {"status": leader["status"] | {"containerStatuses": [status]}}
    logs: Logs = {(meta.uid(pod), "main"): ["\n".join(program.lines)]}
    episode = build(GroupObservation(pods=[pod], now=NOW, logs=logs), Mask())
    last = {"terminated": ended(program.exit_code, 10, message=MESSAGES["quoted"](program))}
    why = podstate.waiting_reason({"status": {"containerStatuses": [status | {"lastState": last}]}})
    if program.error.is_certain:
        assert program.error.line[:200] in episode.failure
        assert program.error.line in why
        assert any(program.error.line in line for line in episodetable.brief_lines(episode, NOW, "lws")[1:])
