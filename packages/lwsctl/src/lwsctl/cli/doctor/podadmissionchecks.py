"""Checks whether the webhook or a policy of kube-apiserver adds pods to their groups. Pure."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from leaderworkerset.decisions.managerconfiguration import PodAdmission, podpolicy
from lwsctl.cli.doctor.findings import CheckResult, Level, Read, UnreadableObject
from lwsctl.diagnosis.causes.components.podpolicies import RESTORE, missing_and_edited_kinds
from lwsctl.views.wording import join_names

SUBJECT = "pod admission"
BY_WEBHOOK = "all pods depend on the webhook"


class AdmissionFacts(Struct, frozen=True, kw_only=True):
    """The configured value of `podAdmission`, whether policies are served, and the policy objects by kind."""

    mode: str | UnreadableObject = PodAdmission.WEBHOOK.value
    is_served: bool = False
    objects: Mapping[str, Read] = field(default_factory=dict)


def findings(facts: AdmissionFacts, version: str) -> Iterator[CheckResult]:
    """Yield the component that mutates pods, and the differences from the configuration."""
    unread = [obj.reason for obj in facts.objects.values() if isinstance(obj, UnreadableObject)]
    stored = {kind: obj if isinstance(obj, dict) else None for kind, obj in facts.objects.items()}
    missing, edited = missing_and_edited_kinds(stored)
    if isinstance(facts.mode, UnreadableObject) or unread:
        why = facts.mode.reason if isinstance(facts.mode, UnreadableObject) else unread[0]
        yield CheckResult("LWS-D311", Level.UNKNOWN, SUBJECT, f"unknown: {why}", "ask an administrator")
    elif facts.mode == PodAdmission.WEBHOOK:
        yield _webhook_result([kind for kind in stored if kind not in missing])
    elif not facts.is_served:
        level = Level.ERROR if facts.mode == PodAdmission.POLICY else Level.NOTE
        text = f"podAdmission is {facts.mode}, but Kubernetes {version} does not serve these policies, so {BY_WEBHOOK}"
        fix = "upgrade the cluster, or set podAdmission to Webhook" if level is Level.ERROR else ""
        yield CheckResult("LWS-D313", level, SUBJECT, text, fix)
    elif missing:
        text = f"{join_names(missing, 2)} {podpolicy.NAME} is missing, so {BY_WEBHOOK}"
        yield CheckResult("LWS-D314", Level.WARNING, SUBJECT, text, RESTORE)
    elif edited:
        text = f"{join_names(edited, 2)} {podpolicy.NAME} was edited, so pods might differ from pods that the webhook mutates"
        yield CheckResult("LWS-D315", Level.ERROR, SUBJECT, text, RESTORE)
    else:
        text = f"through the policy {podpolicy.NAME}; the webhook processes pods that the policy does not match"
        yield CheckResult("LWS-D312", Level.OK, SUBJECT, text)


def _webhook_result(stored: list[str]) -> CheckResult:
    """Return the result for a configuration that does not permit the policy."""
    if not stored:
        return CheckResult("LWS-D312", Level.OK, SUBJECT, f"through the webhook, so {BY_WEBHOOK}")
    text = f"podAdmission is Webhook, but {join_names(stored, 2)} {podpolicy.NAME} of a previous configuration exists"
    fix = f"kubectl delete mutatingadmissionpolicybinding,mutatingadmissionpolicy {podpolicy.NAME}"
    return CheckResult("LWS-D316", Level.WARNING, SUBJECT, text, fix)
