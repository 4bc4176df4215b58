"""The path of a reader who follows one decision from top to bottom, each function at its first call.

A stay is a visit of one file; a return is one to a file that was left before. The words of Kubernetes (`kuberuntime`)
and of the API (`api`) are known, and are not followed.
"""

import sys
from collections.abc import Callable
from datetime import datetime
from types import FrameType
from typing import Final, TypeAlias

import pytest
from tests import builders
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile_rollouts import rolling

from leaderworkerset.capabilities import deciding
from leaderworkerset.core.leaderworkerset import reconcile
from leaderworkerset.core.leaderworkerset.decision import Decision, ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupindex import fold

ROOT: Final = "/src/leaderworkerset/"
KNOWN: Final = f"{ROOT}api/"

EDITED: Final = builders.leaderworkerset_object(image="app:2", metadata={"generation": 2})
OLD: Final = builders.revision(builders.leaderworkerset_object(image="app:0"), number=7)


Decide: TypeAlias = Callable[[ObservedLeaderWorkerSet, datetime], Decision]


def walk(observed: ObservedLeaderWorkerSet, decide: Decide) -> list[str]:
    """Return the files of the product that are visited, in order."""
    frames: list[tuple[str, bool]] = []
    seen: set[object] = set()
    stays: list[str] = []

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            path = frame.f_code.co_filename
            is_followed = not frames or frames[-1][1]
            is_ours = ROOT in path and KNOWN not in path
            frames.append((path if is_ours else "", is_followed and not (is_ours and frame.f_code in seen)))
            seen.add(frame.f_code)
        elif event == "return" and frames:
            frames.pop()
        path, is_followed = frames[-1] if frames else ("", False)
        if path and is_followed and stays[-1:] != [path]:
            stays.append(path)

    sys.setprofile(follow)
    try:
        decide(observed, builders.NOW)
    finally:
        sys.setprofile(None)
    return stays


@pytest.mark.parametrize(
    ("observed", "decide", "most", "returns"),
    [
        (cases.at_rest(), reconcile.decide, 30, 20),
        (rolling(cases.ready_groups(cases.LWS, 4, key="older")), reconcile.decide, 46, 33),
        (
            cases.replace(cases.at_rest(), revisions=[OLD, builders.revision(cases.LWS, number=8)]),
            reconcile.decide,
            38,
            26,
        ),
        (cases.replace(cases.at_rest(), leaderworkerset=EDITED), reconcile.decide, 54, 37),
        (cases.at_rest(), deciding.decide, 34, 22),
    ],
    ids=["at rest", "a step of a rollout", "the end of a rollout", "an edit", "at rest with all capabilities"],
)
def test_decision_takes_few_functions(
    observed: ObservedLeaderWorkerSet, decide: Decide, most: int, returns: int
) -> None:
    """Before ADR 13, an edit needed 81 stays with 63 returns, and a decision at rest 91 with 71.

    A plan with writes also has the status for the case that one fails.
    """
    observed = cases.replace(observed, folded=fold(observed.groups.values(), "web"))  # as the controller keeps it
    decide(observed, builders.NOW)  # what is made at the first use is not part of the walk

    stays = walk(observed, decide)

    assert stays[0] == stays[-1]
    assert len(stays) <= most
    assert len(stays) - len(set(stays)) <= returns
