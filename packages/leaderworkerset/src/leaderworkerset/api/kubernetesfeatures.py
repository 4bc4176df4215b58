"""Lists the Kubernetes features that this project uses, and the effects in versions without them.

Controllers never check the version. They detect the kinds that the API server serves, and the fields that it stores.
This table is for the manager log, `lws doctor`, the documentation, and the test expectations for each version.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects import decimals

TESTED: Final = (34, 35, 36, 37)
"""The minor versions that were tested by the integration tests (docs/reference/compatibility.md, "What ran")."""

SUPPORTED: Final = 34
"""The oldest minor version that upstream supports."""


class Version(NamedTuple):
    """A Kubernetes 1.x version."""

    minor: int
    patch: int = 0


def parse(text: str) -> Version | None:
    """Return the version of an API server, or None if the string does not contain a version.

    >>> parse("v1.36.3"), parse("v1.35.0-gke.1"), parse("v1.27+")
    (Version(minor=36, patch=3), Version(minor=35, patch=0), Version(minor=27, patch=0))
    >>> parse("of unknown version")
    """
    match = re.match(r"v?1\.(\d{1,5})(?:\.(\d{1,5}))?", text)
    if match is None:
        return None
    return Version(decimals.natural(match[1]) or 0, decimals.natural(match[2] or "") or 0)


class Feature(Struct, frozen=True):
    """A Kubernetes feature that is enabled by default in some versions."""

    name: str
    since: Version
    missing_effect: str
    """The effect of a missing feature, with a description for administrators."""
    exceptions: tuple[Version, Version] | None = None
    """A range of later versions without the feature. The second version is not part of the range."""

    def is_enabled_in(self, version: Version) -> bool:
        """Return whether the feature is enabled by default in a version."""
        lacks = self.exceptions is not None and self.exceptions[0] <= version < self.exceptions[1]
        return version >= self.since and not lacks


START_ORDINAL: Final = Feature(
    "spec.ordinals of StatefulSets", Version(27), "workers cannot be created, so the manager does not start"
)
MATCH_CONDITIONS: Final = Feature(
    "matchConditions of webhooks", Version(28), "webhooks are also called for objects that are being deleted"
)
EXEC: Final = Feature("exec over WebSocket", Version(30), "`lws exec` and `lws cp` fail. Use kubectl instead")
AFFINITY_KEYS: Final = Feature(
    "matchLabelKeys of pod affinity", Version(31), "the API server drops matchLabelKeys from pod templates"
)
RESIZE: Final = Feature(
    "the resize subresource of pods",
    Version(33),
    "CPU and memory cannot be updated in place. The manager reports the problem in an event, and the update of the group waits",
)
STREAMING_LISTS: Final = Feature(
    "streaming lists", Version(32), "the manager lists objects in pages at startup", (Version(33), Version(34))
)
SPREAD_KEYS: Final = Feature(
    "matchLabelKeys merged into topology spread selectors",
    Version(34),
    "only kube-scheduler evaluates matchLabelKeys. Other schedulers might ignore the field",
)
RESTART_RULES: Final = Feature(
    "restartPolicyRules of containers", Version(35), "the API server drops restartPolicyRules"
)
RESTART_ALL: Final = Feature(
    "the action RestartAllContainers",
    Version(36),
    "the API server rejects the action, so the group is recreated if a container fails",
)
RESIZE_CHECK: Final = Feature(
    "rejection of resizes that exceed the node capacity",
    Version(36),
    "the API server accepts the resize, and the kubelet reports that the resize is infeasible",
)
POD_POLICIES: Final = Feature(
    "MutatingAdmissionPolicies",
    Version(36),
    "the webhook admits pods, even with `podAdmission: Auto`. With `podAdmission: Policy`, the manager does not start",
)
ALPHA_POD_GROUPS: Final = Feature(
    "PodGroups of scheduling.k8s.io, behind feature gates",
    Version(36),
    "native gang scheduling is not available. Use the provider built-in, volcano or coscheduling",
)
POD_GROUPS: Final = Feature(
    "scheduling.k8s.io/v1beta1, behind a feature gate",
    Version(37),
    "objects with spec.scheduling are rejected at admission",
)
MAX_UNAVAILABLE: Final = Feature(
    "maxUnavailable of StatefulSets",
    Version(35),
    "the manager itself deletes outdated leaders, but no more than maxUnavailable at a time",
    (Version(35, 4), Version(37)),
)

FEATURES: Final = (
    START_ORDINAL,
    MATCH_CONDITIONS,
    EXEC,
    AFFINITY_KEYS,
    STREAMING_LISTS,
    RESIZE,
    SPREAD_KEYS,
    RESTART_RULES,
    RESTART_ALL,
    RESIZE_CHECK,
    POD_POLICIES,
    ALPHA_POD_GROUPS,
    POD_GROUPS,
    MAX_UNAVAILABLE,
)

OLDEST: Final = START_ORDINAL.since.minor
"""The first minor version that supports the creation of groups."""


def missing_features(version: Version) -> list[Feature]:
    """Return the features that are not enabled by default in a version."""
    return [feature for feature in FEATURES if not feature.is_enabled_in(version)]


def unsupported_reason(text: str) -> str:
    """Return the reason why the manager does not support a version, or an empty string if there is none.

    >>> unsupported_reason("v1.26.3")
    'Kubernetes v1.26.3 does not support spec.ordinals of StatefulSets, which all groups require. Upgrade the cluster to 1.27 or later'
    """
    version = parse(text)
    if version is None or START_ORDINAL.is_enabled_in(version):
        return ""
    return (
        f"Kubernetes {text} does not support {START_ORDINAL.name}, which all groups require. Upgrade the cluster to "
        f"1.{OLDEST} or later"
    )


def untested_note(text: str) -> str:
    """Return a note for an untested version, or an empty string for a tested version.

    >>> untested_note("v1.36.3")
    ''
    >>> untested_note("v1.38.0")
    'Kubernetes v1.38.0 is not tested with this version of lws. Tested versions are 1.34 to 1.37'
    """
    version = parse(text)
    if version is not None and version.minor in TESTED:
        return ""
    return (
        f"Kubernetes {text} is not tested with this version of lws. Tested versions are 1.{TESTED[0]} to 1.{TESTED[-1]}"
    )


def describe_degradation(text: str) -> list[str]:
    """Return the missing features of a version, compared with the oldest supported version, and the effects.

    >>> [text.partition(":")[0] for text in describe_degradation("v1.33.2")]
    ['streaming lists', 'matchLabelKeys merged into topology spread selectors']
    >>> describe_degradation("v1.34.4"), describe_degradation("v1.38.0")
    ([], [])
    """
    version = parse(text)
    if version is None:
        return []
    expected = Version(SUPPORTED)
    return [
        f"{feature.name}: {feature.missing_effect}"
        for feature in missing_features(version)
        if feature.is_enabled_in(expected)
    ]
