"""Tests which features are enabled by default in each Kubernetes version."""

import pytest

from leaderworkerset.api import kubernetesfeatures
from leaderworkerset.api.kubernetesfeatures import (
    ALPHA_POD_GROUPS,
    EXEC,
    FEATURES,
    MAX_UNAVAILABLE,
    OLDEST,
    POD_GROUPS,
    RESIZE,
    RESTART_ALL,
    SPREAD_KEYS,
    START_ORDINAL,
    STREAMING_LISTS,
    Feature,
    Version,
)


@pytest.mark.parametrize(
    ("feature", "present", "absent"),
    [
        (MAX_UNAVAILABLE, ["1.35.0", "1.35.3", "1.37.0", "1.38.1"], ["1.34.4", "1.35.4", "1.36.3"]),
        (STREAMING_LISTS, ["1.32.0", "1.34.0", "1.37.2"], ["1.31.9", "1.33.0", "1.33.7"]),
        (RESIZE, ["1.33.0"], ["1.32.9"]),
        (SPREAD_KEYS, ["1.34.0"], ["1.33.9"]),
        (EXEC, ["1.30.0"], ["1.29.9"]),
        (RESTART_ALL, ["1.36.0"], ["1.35.4"]),
        (ALPHA_POD_GROUPS, ["1.36.0"], ["1.35.4"]),
        (POD_GROUPS, ["1.37.0"], ["1.36.3"]),
        (START_ORDINAL, ["1.27.0"], ["1.26.15"]),
    ],
    ids=lambda value: value.name if isinstance(value, Feature) else "",
)
def test_feature_is_known_for_the_versions_that_have_it(
    feature: Feature, present: list[str], absent: list[str]
) -> None:
    found = {
        text: feature.is_enabled_in(version)
        for text in [*present, *absent]
        if (version := kubernetesfeatures.parse(text))
    }
    assert found == dict.fromkeys(present, True) | dict.fromkeys(absent, False)


def test_newest_tested_version_has_every_feature() -> None:
    assert kubernetesfeatures.missing_features(Version(kubernetesfeatures.TESTED[-1])) == []
    assert kubernetesfeatures.missing_features(Version(OLDEST - 1)) == [*FEATURES]


@pytest.mark.parametrize("text", ["", "v2.1.0", "with an unknown version", "v1.", "1.x"])
def test_text_without_a_version_is_not_parsed(text: str) -> None:
    assert kubernetesfeatures.parse(text) is None
    assert kubernetesfeatures.unsupported_reason(text) == ""
    assert kubernetesfeatures.describe_degradation(text) == []
