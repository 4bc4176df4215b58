"""Tests that the reason for missing logs is printed once, and is printed again when it changes."""

import pytest
from testkit.objects import pod

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.views.loglines import WaitingNotes


def test_reason_for_missing_logs_is_printed_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    notes = WaitingNotes("web", None)
    said = []
    for reasons in (
        [],
        ["ContainerCreating", "ContainerCreating"],
        ["Running", "ContainerCreating"],
        ["Running", "ErrImagePull"],
        ["Running", "ImagePullBackOff"],
        ["Running", "ErrImagePull"],
        ["Running", "Running"],
        ["Running", "ErrImagePull"],
    ):
        states: list[JSONObject] = [
            {"running": {}} if reason == "Running" else {"waiting": {"reason": reason}} for reason in reasons
        ]
        statuses = [[{"name": "main", "state": state}] for state in states]
        notes.update([pod(f"web-{at}", containerStatuses=found) for at, found in enumerate(statuses)])
        said.append(capsys.readouterr().err.removeprefix("note: waiting for logs: ").strip())
    assert said == [
        "no pods of web match",
        "web-0 and 1 more pod have no log yet (ContainerCreating)",
        "",
        "web-1 has no log yet (ErrImagePull)",
        "web-1 has no log yet (ImagePullBackOff)",
        "",
        "",
        "web-1 has no log yet (ErrImagePull)",
    ]
