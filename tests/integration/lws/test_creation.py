"""What one LeaderWorkerSet becomes."""

from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import Space


async def test_groups_come_up_and_the_status_says_so(space: Space) -> None:
    """R-ARC-2, R-STAT-1, R-STAT-6 to R-STAT-8."""
    await space.create(lws(replicas=2, size=3))
    await space.settled()
