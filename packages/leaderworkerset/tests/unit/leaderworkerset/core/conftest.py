"""Repeats each decision with only the cached fields. The result must be the same."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from tests import decisions
from tests.kept import checked

from leaderworkerset.capabilities import deciding
from leaderworkerset.core.leaderworkerset import groupstate, outdatedleaders, revisions
from leaderworkerset.core.pod import reconcile as of_pod
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.policies import exclusive, failures

ENTRIES: Final[tuple[Callable[..., Any], ...]] = (
    decisions.reconcile,
    deciding.reconcile_group,
    of_pod.reconcile,
    of_pod.required_node,
)
"""The decisions that tests import by name."""

PARTS: Final = (
    (groupstate, "describe"),
    (groupstate, "describe_workers"),
    (groupstate, "is_statefulset_ready"),
    (exclusive, "node_selector"),
    (failures, "failed_pods"),
    (failures, "has_failed"),
    (outdatedleaders, "leaders_to_delete"),
    (outdatedleaders, "recreate_revision"),
    (revisions, "resolve"),
    (statefulset, "build"),
)
"""Parts of decisions that tests access through their modules."""


@pytest.fixture(autouse=True, scope="module")
def _decide_again(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in list(vars(request.module).items()):
            if any(value is entry for entry in ENTRIES):
                patch.setattr(request.module, name, checked(value))
        for module, name in PARTS:
            patch.setattr(module, name, checked(getattr(module, name)))
        yield
