"""Tests the validation of `spec.scheduling` if the owner's Workload describes the groups."""

import pytest
from tests.unit.leaderworkerset.core.admission.test_schedulingfield import GANG, errors, lws

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

DELEGATED = {labels.GROUP_TEMPLATE_NAME: "workers"}
OWNED = {
    "ownerReferences": [
        {"controller": True, "apiVersion": "example.com/v1", "kind": "Pipeline", "name": "p", "uid": "u"}
    ]
}
TEMPLATE_NAME = "metadata.annotations[scheduling.k8s.io/group-template-name]"
PARENT = "metadata.annotations[scheduling.k8s.io/parent-compositepodgroup]"


@pytest.mark.parametrize(
    ("metadata", "scheduling", "expected"),
    [
        ({"annotations": DELEGATED} | OWNED, GANG, []),
        (
            {"annotations": {labels.PARENT_COMPOSITE_POD_GROUP: "p"}},
            {},
            [f"{PARENT}: Forbidden: requires the group-template-name delegation annotation"],
        ),
        (
            {"annotations": {labels.GROUP_TEMPLATE_NAME: "", labels.PARENT_COMPOSITE_POD_GROUP: ""}},
            {"replica": {"leader": {}}},
            [
                f"{TEMPLATE_NAME}: Required value: must name a parent Workload template",
                f"{TEMPLATE_NAME}: Forbidden: delegated scheduling requires a controller owner",
                f"{PARENT}: Required value: must name a parent CompositePodGroup",
                f"{TEMPLATE_NAME}: Forbidden: delegated scheduling supports only whole-LWS or replica mode",
            ],
        ),
    ],
)
def test_delegated_scheduling_requires_an_owner_and_names(
    metadata: JSONObject, scheduling: JSONObject, expected: list[str]
) -> None:
    """Delegated scheduling requires an owner and names (N-SCH-VAL-7)."""
    assert errors(lws(scheduling, metadata=metadata)) == expected
