"""Finds a pod admission policy in kube-apiserver that is missing or was edited. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kuberuntime.objects import resources
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.decisions.managerconfiguration import (
    ConfigurationError,
    PodAdmission,
    parse_configuration,
    podpolicy,
)
from leaderworkerset.install.workload import CONFIGURATION_KEY
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.managers import OWN_WEBHOOK
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank

DENIED: Final = re.compile(rf"policy '{podpolicy.NAME}' with binding '[^']*' denied request")
"""The API server's message about an error in an edited policy that does not ignore errors."""

RESTORE: Final = "check the manager logs; the manager restores the policy if it has the permissions"


def first_rejected_rank(observed: Observed) -> Rank | None:
    """Return the first rank whose pod was rejected by the policy or because the webhook is unreachable."""
    missing = observed.ranks_at(ranks.is_missing)
    return next((rank for rank in missing if any(p.search(rank.why[:READ]) for p in (DENIED, OWN_WEBHOOK))), None)


def _is_required(observed: Observed) -> bool:
    """Return whether a manager is configured to use the policy, regardless of the Kubernetes version."""
    texts = [(obj.get("data") or {}).get(CONFIGURATION_KEY) or "" for obj in observed.get(resources.CONFIG_MAPS)]
    for text in texts:
        try:
            if parse_configuration(text.encode()).pod_admission == PodAdmission.POLICY:
                return True
        except ConfigurationError:  # `lws doctor` reports it
            continue
    return False


def _differences(observed: Observed) -> Sequence[str]:
    """Return the differences between the stored policy objects and the objects that the manager writes."""
    stored = {kind.kind: observed.by_name(kind, podpolicy.NAME) for kind in podpolicy.KINDS}
    if not any(stored.values()) and not _is_required(observed):
        return ()
    missing, edited = missing_and_edited_kinds(stored)
    texts = [f"{kind} {podpolicy.NAME} is missing" for kind in missing]
    return [*texts, *(f"{kind} {podpolicy.NAME} was edited" for kind in edited)]


def missing_and_edited_kinds(stored: Mapping[str, JSONObject | None]) -> tuple[list[str], list[str]]:
    """Return the kinds of policy objects that do not exist, and of policy objects that were edited."""
    edited = [kind for kind, obj in stored.items() if obj is not None and not podpolicy.is_unmodified(obj)]
    return [kind for kind, obj in stored.items() if obj is None], edited


@cause(
    code="LWS-E122",
    title="the pod admission policy is missing or was changed",
    meaning="The MutatingAdmissionPolicy for pods or its binding is missing or was changed. If it is missing, pods require the webhook. A changed policy can reject pods.",
    person=Person.ADMINISTRATOR,
    remedy="Start the manager. If the manager does not restore the policy, check its permissions. See [create pods without webhooks](../how-to/pod-admission.md).",
)
def find_impaired_policy(observed: Observed) -> Finding | None:
    """Find a rejected pod that the unmodified policy would admit."""
    rank = first_rejected_rank(observed)
    if rank is None or not all(map(observed.was_read, podpolicy.KINDS)):
        return None
    differences = _differences(observed)
    if not differences:
        return None
    kinds = ",".join(kind.plural for kind in podpolicy.KINDS)
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"{differences[0]}, so pod {rank.pod} cannot be created",
        evidence=(*differences, f"{rank.pod}: {ranks.quote_message(rank.why)}"),
        steps=(
            RESTORE,
            f"{observed.commands.lws} doctor",
            f"{observed.plain_kubectl} get {kinds} {podpolicy.NAME} -o yaml",
        ),
    )
