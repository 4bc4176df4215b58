"""Finds ranks without a pod, because the API server rejects a pod or StatefulSet. Pure.

The reasons are API server messages in Warning events about the StatefulSet or the LeaderWorkerSet.
"""

import re
from functools import partial
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from lwsctl.diagnosis.causes.managers import find_rejected_pod
from lwsctl.diagnosis.finding import Cause, Finding, cause
from lwsctl.diagnosis.installationhealth import NOT_TRUSTED
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import StageMessage
from lwsctl.diagnosis.ranks import is_missing
from lwsctl.model.diagnosis import Person

MissingRankMessage: Final = partial(StageMessage, is_missing)
"""Finds the first rank without a pod that has a matching message."""

NAMESPACE_ENDS: Final = Cause(
    code="LWS-E002",
    title="the namespace is being deleted",
    meaning="Objects cannot be created in a namespace that is being deleted.",
    person=Person.ADMINISTRATOR,
    remedy="Wait until the namespace is deleted and then recreate it, or use a different namespace.",
    find=MissingRankMessage(
        r"because it is being terminated|namespace .* is being terminated",
        "namespace {namespace} is being deleted, so pod {pod} cannot be created{others}",
        (
            "wait until namespace {namespace} is deleted, and then recreate it, or use a different namespace",
            "{kubectl} get namespace {namespace} -o yaml",
        ),
    ),
)

UNTRUSTED: Final = MissingRankMessage(
    rf"failed calling webhook \"(?P<webhook>[^\"]+)\".*(?:{NOT_TRUSTED})",
    "the API server does not trust the certificate of webhook {webhook}, so pod {pod} cannot be created{others}",
    (
        "renew the certificate of webhook {webhook}, or correct caBundle in its configuration",
        "{kubectl} get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    ),
)
UNREACHABLE: Final = MissingRankMessage(
    r"failed calling webhook \"(?P<webhook>[^\"]+)\"",
    "webhook {webhook} cannot be reached, so pod {pod} cannot be created{others}",
    (
        "start the server of webhook {webhook}; if it was removed permanently, uninstall the component completely",
        "{kubectl} get mutatingwebhookconfigurations,validatingwebhookconfigurations",
        "{kubectl} get endpointslices -A",
    ),
)


def _with_manager_steps(observed: Observed, finding: Finding | None) -> Finding | None:
    """Return the finding. If the webhook belongs to the manager, the next steps are for the manager."""
    if finding is None or find_rejected_pod(observed) is None:
        return finding
    steps = (
        f"{observed.commands.lws} doctor",
        f"{observed.plain_kubectl} get deployments,pods,endpointslices -A -l app.kubernetes.io/name=lws",
    )
    return replace(finding, steps=steps)


@cause(
    code="LWS-E007",
    title="the certificate of a webhook is not trusted",
    meaning="The API server does not trust the certificate of an admission webhook. The certificate has expired or was issued by a different CA.",
    person=Person.ADMINISTRATOR,
    remedy="Renew the certificate, or correct caBundle in the webhook configuration. A running manager renews its own certificate.",
)
def find_untrusted_webhook(observed: Observed) -> Finding | None:
    """Find a webhook whose certificate the API server does not trust."""
    return _with_manager_steps(observed, UNTRUSTED(observed))


@cause(
    code="LWS-E008",
    title="a webhook cannot be reached",
    meaning="The API server cannot reach an admission webhook, so pods are not created.",
    person=Person.ADMINISTRATOR,
    remedy="Start the webhook server. If the webhook belongs to the manager, see [when the manager is unavailable](../how-to/when-the-manager-is-away.md).",
)
def find_unreachable_webhook(observed: Observed) -> Finding | None:
    """Find a webhook to which the API server cannot connect."""
    return _with_manager_steps(observed, UNREACHABLE(observed))


DENIED_BY_WEBHOOK: Final = Cause(
    code="LWS-E009",
    title="a webhook denies the pods",
    meaning="An admission webhook denies a pod. The message shows the reason.",
    person=Person.AUTHOR,
    remedy="Change the pod template as the message requires. Otherwise, ask a cluster administrator to change the policy of the webhook.",
    find=MissingRankMessage(
        r"admission webhook \"(?P<webhook>[^\"]+)\" denied the request(?:: (?P<reason>.*))?",
        "webhook {webhook} denies pod {pod}{others}: {reason}",
        (
            "change {template} as the message requires, or ask a cluster administrator to change the policy of webhook {webhook}",
        ),
    ),
)

DENIED_BY_POLICY: Final = Cause(
    code="LWS-E010",
    title="an admission policy denies the pods",
    meaning="A ValidatingAdmissionPolicy denies a pod. The message shows the reason.",
    person=Person.AUTHOR,
    remedy="Change the pod template as the message requires. Otherwise, ask a cluster administrator to change the policy.",
    find=MissingRankMessage(
        r"ValidatingAdmissionPolicy '(?P<policy>[^']+)'.*denied request: (?P<reason>.*)",
        "ValidatingAdmissionPolicy {policy} denies pod {pod}{others}: {reason}",
        ("{kubectl} get validatingadmissionpolicy {policy} -o yaml",),
    ),
)

TOO_LONG: Final = MissingRankMessage(
    r"must be no more than (?P<most>\d+) (?:characters|bytes)",
    "the name {name} is too long: names derived from it exceed {most} characters",
    ("recreate {name} with a shorter name",),
)


@cause(
    code="LWS-E011",
    title="the name of the LeaderWorkerSet is too long",
    meaning="The names and labels of pods contain the name of the LeaderWorkerSet, and are limited to 63 characters.",
    remedy="Recreate the LeaderWorkerSet with a shorter name. If another object created the LeaderWorkerSet, use a shorter name for that object.",
)
def find_too_long_name(observed: Observed) -> Finding | None:
    """Find pods whose names or labels are too long. The name of a generated set is derived from its owner."""
    finding, owner = TOO_LONG(observed), meta.controller_of(observed.view.object)
    if finding is None or owner is None:
        return finding
    kind, name = owner["kind"], owner["name"]
    part = ", or the names of its roles," if kind == DISAGGREGATED_SETS.kind else ""
    step = f"shorten the name of {kind} {name}{part} and recreate it, because the name {observed.view.name} is derived from it"
    return replace(finding, steps=(step,))


NO_QUOTA_LEFT: Final = MissingRankMessage(
    r"(?:(?<![a-z0-9.])(?P<kind>[a-z]{1,63}(?:\.[a-z0-9.]{1,253})?) \"(?P<object>[^\"]{1,253})\" is forbidden: )?"
    r"exceeded quota: (?P<quota>[^,]{1,253}), requested: (?P<requested>.{1,500}?), used: (?P<used>.{1,500}?), "
    r"limited: (?P<limited>.{1,500}?)(?:$|[;:\s]{0,9}$)",
    "ResourceQuota {quota} does not allow pod {pod}{others}: it requests {requested}, {used} of {limited} is used",
    ("{kubectl} describe resourcequota {quota}", "increase the quota, or delete other pods in the namespace"),
)

OF_ONE_MACHINE: Final = re.compile(r"exceeded quota: max-pods, requested: count/pods=")
"""The embedded cluster's message about a pod that exceeds --max-pods. No ResourceQuota exists for this limit."""


OF_OTHER_KIND: Final = re.compile(
    r"\b(?P<kind>(?!pods\b)[a-z]+)(?:\.[a-z0-9.]+)? \"(?P<object>[^\"]+)\" is forbidden: exceeded quota"
)
"""The rejection of an object that is not a pod, such as the StatefulSet that would create the pods."""


def _other_quota_finding(finding: Finding, match: re.Match[str]) -> Finding:
    """Return the finding for a quota that limits StatefulSets, claims or other objects except pods."""
    kind, name = match["kind"].removesuffix("s"), match["object"]
    room = finding.sentence.replace(" does not allow pod ", f" does not allow {kind} {name}, which pod ", 1)
    sentence = re.sub(r"(, which pod \S+?)( \(and [^)]*\))?: it requests", r"\1 needs\2: it requests", room)
    steps = (finding.steps[0], f"increase the quota, or delete other {match['kind']} in the namespace")
    return replace(finding, sentence=sentence, steps=steps)


@cause(
    code="LWS-E020",
    title="a ResourceQuota is exhausted",
    meaning="The pods, or the StatefulSets that create them, would exceed a ResourceQuota of the namespace.",
    remedy="Increase the quota, delete objects that use the quota, or reduce the requests of the pods.",
)
def find_exhausted_quota(observed: Observed) -> Finding | None:
    """Find pods that exceed a quota, or the pod limit of an embedded cluster."""
    finding = NO_QUOTA_LEFT(observed)
    if finding is not None and (other := OF_OTHER_KIND.search(" ".join(finding.evidence))):
        return _other_quota_finding(finding, other)
    if finding is None or not any(map(OF_ONE_MACHINE.search, finding.evidence)):
        return finding
    steps = (
        "for a local cluster, restart `lws up` with a larger --max-pods",
        *finding.steps,
    )
    return replace(finding, steps=steps)


QUOTA_INCOMPLETE: Final = Cause(
    code="LWS-E021",
    title="a ResourceQuota requires requests or limits",
    meaning="A ResourceQuota limits CPU or memory. Therefore, every container must specify requests or limits.",
    remedy="Set the missing requests or limits, or create a LimitRange that sets defaults.",
    find=MissingRankMessage(
        r"failed quota: (?P<quota>[^:]+): must specify (?P<fields>.+)",
        "ResourceQuota {quota} requires pod {pod} to specify {fields}{others}",
        ("set the missing fields in {template}: {fields}",),
    ),
)

LIMIT_RANGE: Final = Cause(
    code="LWS-E022",
    title="a LimitRange rejects the pods",
    meaning="The requests of a pod are outside the range that a LimitRange of the namespace allows.",
    remedy="Change the requests and limits, or change the LimitRange.",
    find=MissingRankMessage(
        r"(?P<reason>(?:maximum|minimum|max limit to request ratio)\b.*? (?:usage|request ratio|ratio) per (?:Container|Pod|PersistentVolumeClaim).*)",
        "a LimitRange of namespace {namespace} rejects pod {pod}{others}: {reason}",
        ("{kubectl} describe limitrange",),
    ),
)

POD_SECURITY: Final = Cause(
    code="LWS-E023",
    title="Pod Security rejects the pods",
    meaning="The namespace enforces a Pod Security level that the pod template violates.",
    remedy="Set the required securityContext fields in the pod template, or change the Pod Security level of the namespace.",
    find=MissingRankMessage(
        r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<reason>.*)",
        "Pod Security level {level} of namespace {namespace} rejects pod {pod}{others}: {reason}",
        ("set securityContext in {template}", "{kubectl} get namespace {namespace} --show-labels"),
    ),
)

SECURITY_CONSTRAINTS: Final = Cause(
    code="LWS-E024",
    title="no security context constraint admits the pods",
    meaning="On OpenShift, the service account is not permitted to use a SecurityContextConstraints object that admits the pod.",
    person=Person.ADMINISTRATOR,
    remedy="Change securityContext, or grant the service account permission to use suitable SecurityContextConstraints.",
    find=MissingRankMessage(
        r"unable to validate against any security context constraint: (?P<reason>.*)",
        "no SecurityContextConstraints admit pod {pod}{others}",
        ("oc adm policy scc-subject-review -n {namespace} -f POD.yaml",),
    ),
)

NO_SERVICE_ACCOUNT: Final = Cause(
    code="LWS-E025",
    title="the service account does not exist",
    meaning="The service account in the pod template does not exist in the namespace.",
    remedy="Create the service account, or correct serviceAccountName.",
    find=MissingRankMessage(
        r"serviceaccount \"(?P<account>[^\"]+)\" not found",
        "service account {account} does not exist in namespace {namespace}, so pod {pod} cannot be created{others}",
        (
            "create service account {account}, or correct serviceAccountName in {template}",
            "{kubectl} create serviceaccount {account}",
        ),
    ),
)

NO_PRIORITY_CLASS: Final = Cause(
    code="LWS-E026",
    title="the priority class does not exist",
    meaning="The PriorityClass in the pod template does not exist in the cluster.",
    remedy="Create the PriorityClass, or correct priorityClassName.",
    find=MissingRankMessage(
        r"no PriorityClass with name (?P<priority>\S+) was found",
        "PriorityClass {priority} does not exist, so pod {pod} cannot be created{others}",
        (
            "create PriorityClass {priority}, or correct priorityClassName in {template}",
            "{kubectl} get priorityclasses",
        ),
    ),
)

NO_RUNTIME_CLASS: Final = Cause(
    code="LWS-E027",
    title="the runtime class does not exist",
    meaning="The RuntimeClass in the pod template does not exist in the cluster.",
    remedy="Create the RuntimeClass, or correct runtimeClassName.",
    find=MissingRankMessage(
        r"RuntimeClass \"(?P<runtime>[^\"]+)\" not found",
        "RuntimeClass {runtime} does not exist, so pod {pod} cannot be created{others}",
        (
            "create RuntimeClass {runtime}, or correct runtimeClassName in {template}",
            "{kubectl} get runtimeclasses",
        ),
    ),
)

INVALID_TEMPLATE: Final = Cause(
    code="LWS-E012",
    title="a template is invalid",
    meaning="The API server rejects a pod or StatefulSet, because a field in a template is invalid.",
    remedy="Correct the field that the message shows. The field is in the pod template or in a volume claim template.",
    find=MissingRankMessage(
        r"is invalid: (?P<reason>.*)",
        "{template} is invalid, so pod {pod} cannot be created{others}: {reason}",
        ("correct this field of {name}, and apply the manifest again",),
    ),
)

NOT_ALLOWED: Final = Cause(
    code="LWS-E013",
    title="a controller does not have a required permission",
    meaning="The manager or a controller of the cluster does not have a permission that it requires.",
    person=Person.ADMINISTRATOR,
    remedy="To restore the roles of the manager, reinstall the running version.",
    find=MissingRankMessage(
        r"User \"(?P<user>[^\"]+)\" cannot (?P<verb>\S+) resource \"(?P<resource>[^\"]+)\"",
        "{user} cannot {verb} {resource}, so pod {pod} cannot be created{others}",
        ("{anywhere} install",),
    ),
)

REJECTED: Final = Cause(
    code="LWS-E029",
    title="the API server rejects a pod",
    meaning="The API server rejects a pod or StatefulSet for a reason that has no separate code.",
    person=Person.AUTHOR,
    remedy="Fix the error in the message.",
    find=MissingRankMessage(
        r"(?i)fail|forbidden|error|refused|denied|mistake",
        "pod {pod} cannot be created{others}",
        ("{lws} events {name} --warnings",),
    ),
)
