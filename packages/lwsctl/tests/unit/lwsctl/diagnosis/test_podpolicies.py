"""Tests missing or edited pod admission policies, and situations in which they are not the cause."""

import pytest
from msgspec.structs import replace
from tests.explanations.situations import FORBIDDEN, OWN_WEBHOOK, pod_policy

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.admission import podpolicy
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.views.selection import Selection

POLICY, BINDING = (obj for _, obj in podpolicy.build())
EDITED = POLICY | {"spec": POLICY["spec"] | {"failurePolicy": "Fail"}}
DENIED = f"policy '{podpolicy.NAME}' with binding '{podpolicy.NAME}' denied request: no such key: labels"
OTHER_WEBHOOK = OWN_WEBHOOK.replace("lws-webhook-service", "kueue-webhook-service")


@pytest.mark.parametrize(
    ("why", "mode", "policy", "binding", "words"),
    [
        (OWN_WEBHOOK, "Policy", None, None, f"MutatingAdmissionPolicy {podpolicy.NAME} is missing"),
        (OWN_WEBHOOK, "Auto", POLICY, None, f"MutatingAdmissionPolicyBinding {podpolicy.NAME} is missing"),
        (OWN_WEBHOOK, "Auto", EDITED, BINDING, f"MutatingAdmissionPolicy {podpolicy.NAME} was edited"),
        (DENIED, "Policy", EDITED, BINDING, f"MutatingAdmissionPolicy {podpolicy.NAME} was edited"),
    ],
)
def test_impaired_policy_explains_rejected_pods(
    why: str, mode: str, policy: JSONObject | None, binding: JSONObject | None, words: str
) -> None:
    told = diagnose(pod_policy(why, mode, policy, binding), Selection("web"))
    assert told.code == "LWS-E122"
    assert words in told.sentence
    assert told.sentence.endswith("so pod web-0 cannot be created")


@pytest.mark.parametrize(
    ("why", "mode", "policy", "binding"),
    [
        (OWN_WEBHOOK, "Webhook", None, None),
        (OWN_WEBHOOK, "Auto", None, None),  # the cluster might not serve policies
        (OWN_WEBHOOK, "[", None, None),
        (OWN_WEBHOOK, "Policy", POLICY, BINDING),  # the policy excludes pods that the webhook processes
        (OTHER_WEBHOOK, "Policy", None, None),
        (FORBIDDEN + "no", "Policy", None, None),
    ],
)
def test_other_rejections_are_not_explained_by_the_policy(
    why: str, mode: str, policy: JSONObject | None, binding: JSONObject | None
) -> None:
    assert diagnose(pod_policy(why, mode, policy, binding), Selection("web")).code in {"LWS-E008", "LWS-E029"}


def test_policy_that_cannot_be_read_is_not_blamed() -> None:
    situation = pod_policy(OWN_WEBHOOK, "Policy", None, None)
    known = {kind: objects for kind, objects in situation.objects.items() if kind not in podpolicy.KINDS}
    unread = replace(situation, objects=known, unread_kinds=frozenset(podpolicy.KINDS))
    assert diagnose(unread, Selection("web")).code == "LWS-E008"
