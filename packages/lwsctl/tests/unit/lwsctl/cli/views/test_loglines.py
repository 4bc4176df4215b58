"""The reason for missing logs is printed once, and again when it changes."""

from typing import Any

import pytest

from lwsctl.cli.views.loglines import WaitingNotes


def pod(name: str, reason: str) -> dict[str, Any]:
    state = {"running": {}} if reason == "Running" else {"waiting": {"reason": reason}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": state}]}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main"}], "nodeName": "n"},
        "status": status,
    }


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
        notes.update([pod(f"web-{at}", reason) for at, reason in enumerate(reasons)])
        said.append(capsys.readouterr().err.removeprefix("note: waiting for logs: ").strip())
    assert said == [
        "no pods of web match now",
        "web-0 and 1 more pod have no log yet (ContainerCreating)",
        "",
        "web-1 has no log yet (ErrImagePull)",
        "web-1 has no log yet (ImagePullBackOff)",
        "",
        "",
        "web-1 has no log yet (ErrImagePull)",
    ]
