"""Selects the Kubernetes version of a test, and skips tests of features that it does not support."""

import pytest
from tests.controlplane import build

from leaderworkerset.api import kubernetesfeatures
from leaderworkerset.api.kubernetesfeatures import Feature
from localkube.apiserver.routing.nonresourceurls import VERSION


def has(request: pytest.FixtureRequest, feature: Feature) -> bool:
    """Return whether a feature is enabled by default on the cluster of a test."""
    cluster = request.node.callspec.params["running"]
    text = build.VERSIONS[build.CLUSTERS[cluster]] if cluster in build.CLUSTERS else VERSION["gitVersion"]
    version = kubernetesfeatures.parse(text)
    assert version is not None, text
    return feature.is_enabled_in(version)


def skip_without(request: pytest.FixtureRequest, feature: Feature) -> None:
    """Skip a test of a feature that the cluster does not support."""
    if not has(request, feature):
        pytest.skip(f"this Kubernetes has no {feature.name}")
