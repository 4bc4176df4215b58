"""Tests the warnings for users of Kueue."""

from typing import Any

import pytest
from tests import builders

from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.core.admission.leaderworkerset import queue_warnings

QUEUE = {"kueue.x-k8s.io/queue-name": "team"}


@pytest.mark.parametrize(
    ("labels", "surge", "is_warned"),
    [(QUEUE, "25%", True), (QUEUE, 1, False), (QUEUE, "0%", False), (QUEUE, 0, False), ({}, "25%", False)],
)
def test_surge_percentage_that_kueue_never_admits_is_reported(
    labels: dict[str, str], surge: Any, is_warned: bool
) -> None:
    """A surge percentage that Kueue never admits causes a warning (R-KQ-62)."""
    lws = decode(builders.leaderworkerset_object(rollout={"maxSurge": surge}, metadata={"labels": labels}))

    found = queue_warnings(lws)

    assert len(found) == is_warned
    assert all("rollingUpdateConfiguration.maxSurge" in text and "Use a number" in text for text in found)


@pytest.mark.parametrize(("own", "is_warned"), [({}, True), (QUEUE, False)])
def test_queue_on_the_templates_only_causes_a_warning(own: dict[str, str], is_warned: bool) -> None:
    """A queue that is set only on the templates causes a warning (R-KQ-4)."""
    template = {"workerTemplate": builders.pod_template(labels=QUEUE)}
    lws = decode(builders.leaderworkerset_object(template=template, metadata={"labels": own}))

    found = queue_warnings(lws)

    assert len(found) == is_warned
    assert all("workerTemplate.metadata.labels" in text for text in found)
