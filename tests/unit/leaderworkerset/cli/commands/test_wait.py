"""What `lws wait` waits for, and how it names what is missing."""

from typing import Any

import pytest

from leaderworkerset.cli.commands import wait
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.views.groups import Group, Rank, View


def view(ready: int = 0, *ranks: Rank, conditions: tuple[dict[str, Any], ...] = ()) -> View:
    return View(
        name="web",
        namespace="default",
        ready=ready,
        desired=1,
        up_to_date=1,
        created="",
        groups=(Group(index=0, ranks=ranks),),
        object={"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": list(conditions)}},
    )


AVAILABLE = {"type": "Available", "status": "True", "observedGeneration": 2}


@pytest.mark.parametrize(
    ("condition", "given", "missing"),
    [
        ("ready", None, "it is gone"),
        ("ready", view(1, conditions=(AVAILABLE,)), None),
        ("ready", view(0), "0 of 1 group ready"),
        ("replicas=0", view(0), None),
        ("replicas=2", view(1), "1 group ready, not 2"),
        ("replicas=2", None, "it is gone"),
        ("delete", None, None),
        ("delete", view(0), "it is still there"),
        ("condition=Available", view(1, conditions=(AVAILABLE,)), None),
        (
            "condition=Available",
            view(1, conditions=(AVAILABLE | {"observedGeneration": 1},)),
            "condition Available is True",
        ),
        ("condition=Progressing", view(0), "condition Progressing is not there"),
        ("condition=Progressing=False", view(0), None),
        ("condition=Available", None, "it is gone"),
    ],
)
def test_conditions(condition: str, given: View | None, missing: str | None) -> None:
    assert wait.parse(condition)(given) == missing


@pytest.mark.parametrize("words", ["readiness", "replicas=two", "condition=", "ready=1"])
def test_unknown_words_are_refused(words: str) -> None:
    with pytest.raises(UsageError, match="--for="):
        wait.parse(words)
