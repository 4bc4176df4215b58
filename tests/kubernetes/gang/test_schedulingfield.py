"""Tests that `spec.scheduling` is rejected if its kinds are not served, without affecting other objects."""

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.kubernetes.gang.test_workloadaware import WHOLE, is_served

from kuberuntime.errors import ForbiddenError


async def test_scheduling_is_rejected_if_its_kinds_are_not_served(space: LiveScenario) -> None:
    """Kubernetes 1.36 and the embedded cluster report the missing kinds (N-SCH-VAL-6, N-117-5)."""
    if await is_served(space):
        pytest.skip("its kinds are served here")
    with pytest.raises(ForbiddenError, match="v1beta1 Workload API is not available"):
        await space.create(lws(scheduling={}))


async def test_scheduling_is_validated_if_its_kinds_are_served(space: LiveScenario) -> None:
    """Incompatible levels, and changes to the level, are rejected (N-SCH-VAL-16, N-SCH-VAL-10)."""
    if not await is_served(space):
        pytest.skip("its kinds are not served here")
    with pytest.raises(ForbiddenError, match="incompatible with startupPolicy LeaderReady"):
        await space.create(lws(scheduling={}, startupPolicy="LeaderReady"))
    await space.create(lws(scheduling={}, replicas=0))
    with pytest.raises(ForbiddenError, match="cannot switch the active scheduling level"):
        await space.edit(scheduling=WHOLE)
