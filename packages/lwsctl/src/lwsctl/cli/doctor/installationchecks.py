"""Checks an installation in a cluster, based on data that has already been read. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import kubernetesfeatures, metadata
from leaderworkerset.decisions.installedkinds import MUTATING_NAME, VALIDATING_NAME, WEBHOOK_NOT_CALLED
from leaderworkerset.decisions.nodefit import BUILT_IN_GATE as BUILT_IN
from leaderworkerset.decisions.nodefit import KUBERNETES, NATIVE_GANG_NAME
from lwsctl.cli.doctor import podadmissionchecks
from lwsctl.cli.doctor.findings import CheckResult, Level, Read, UnreadableObject
from lwsctl.cli.doctor.podadmissionchecks import AdmissionFacts
from lwsctl.diagnosis import installationhealth
from lwsctl.diagnosis.causes import featuregates
from lwsctl.views.wording import join_names

SOON: Final = timedelta(days=14)
"""The time before expiry at which a certificate should already have been renewed."""

OTHERS: Final = frozenset({"kueue", BUILT_IN, KUBERNETES})
"""Served kinds that do not indicate which gang scheduler is installed."""

NATIVE: Final = (NATIVE_GANG_NAME, KUBERNETES)
"""The names of kube-scheduler in the configuration."""

UNTRUSTED: Final = "the caBundle of the webhook configurations does not match the CA of the webhook certificate"
LATE: Final = "the webhook does not respond in time; check the manager logs, and the firewalls for port 9443"
PROBE_HINTS: Final = {
    "has expired": "the webhook certificate has expired; restart the manager, or renew the certificate with cert-manager",
    installationhealth.NOT_TRUSTED: UNTRUSTED,
    "no endpoints": "the webhook Service has no ready manager; check the Deployment of the manager",
    "not found": "the webhook Service is missing; reinstall the manager",
    "refused": "the webhook port is closed; check the Deployment and the NetworkPolicy of the manager",
    "deadline": LATE,
    "timed out": LATE,
}
"""Next steps for patterns in the API server's error. The first match applies."""


class Access(Struct, frozen=True):
    """The result of a SelfSubjectAccessReview."""

    verb: str
    resource: str
    is_allowed: bool


class CertificateExpiry(Struct, frozen=True):
    """A certificate and its expiry time."""

    name: str
    expires_at: datetime


class ClusterState(Struct, frozen=True, kw_only=True):
    """All data that was read from a cluster.

    `is_embedded` means that it is a local cluster, which runs the manager itself.
    """

    version: str
    is_embedded: bool
    namespace: str
    lws: str
    definitions: Mapping[str, Read]
    own_definitions: Sequence[JSONObject]
    configurations: Mapping[str, Read]
    probe: str | None
    """The API server's error for the dry run of a LeaderWorkerSet, or None if there was no error."""
    certificates: Sequence[CertificateExpiry] | UnreadableObject
    accesses: Sequence[Access] | UnreadableObject
    deployment: Read
    managers: Sequence[JSONObject]
    """The pods of the Deployment, or none without the permission to list pods."""
    other_namespaces: Sequence[str]
    """Other namespaces with a Deployment of this name, or none without the permission to list Deployments."""
    lease: Read
    gates: Mapping[str, bool] | UnreadableObject
    provider: str | UnreadableObject
    pods: Sequence[JSONObject]
    pod_groups: Sequence[JSONObject]
    """The PodGroups of native gang scheduling in the namespace."""
    served: Mapping[str, bool]
    """The kinds of gang schedulers and of Kueue by name, and whether the API server serves them."""
    queues: Sequence[str]
    """LeaderWorkerSets whose LocalQueue does not exist."""
    admission: AdmissionFacts = AdmissionFacts()


def findings(facts: ClusterState, now: datetime) -> Iterator[CheckResult]:
    """Yield the results of all checks."""
    yield from _check_server(facts)
    yield from _check_crds(facts)
    yield from _check_webhooks(facts)
    yield from podadmissionchecks.findings(facts.admission, facts.version)
    yield from _check_certificates(facts, now)
    yield from _check_manager(facts, now)
    yield from _check_accesses(facts)
    yield from _check_feature_gates(facts, now)
    yield from _check_schedulers(facts)
    yield from _check_kueue(facts)


def _install_command(facts: ClusterState) -> str:
    return "run `lws down` and `lws up`" if facts.is_embedded else f"run `{facts.lws} install`"


def _check_server(facts: ClusterState) -> Iterator[CheckResult]:
    if text := kubernetesfeatures.unsupported_reason(facts.version):
        reason, _, fix = text.partition(". ")
        yield CheckResult("LWS-D101", Level.ERROR, "server", reason, fix)
    elif text := kubernetesfeatures.untested_note(facts.version):
        yield CheckResult("LWS-D102", Level.NOTE, "server", text)
    else:
        yield CheckResult("LWS-D101", Level.OK, "server", f"Kubernetes {facts.version}")
    fix = f"upgrade the cluster to 1.{kubernetesfeatures.SUPPORTED} or newer"
    for text in kubernetesfeatures.describe_degradation(facts.version):
        yield CheckResult(
            "LWS-D103", Level.WARNING, "server", f"Kubernetes {facts.version} does not support {text}", fix
        )


def _check_crds(facts: ClusterState) -> Iterator[CheckResult]:
    good = 0
    for definition in facts.own_definitions:
        name, existing = meta.name(definition), facts.definitions.get(meta.name(definition))
        if isinstance(existing, UnreadableObject):
            yield _unreadable_result("LWS-D201", "definitions", f"{name} cannot be read: {existing.reason}")
        elif existing is None:
            yield CheckResult("LWS-D202", Level.ERROR, "definitions", f"{name} is missing", _install_command(facts))
        elif not meta.is_condition_true(existing, "Established"):
            conflict = (meta.find_condition(existing, "NamesAccepted") or {}).get("message", "")
            text = f"{name} is not established{f': {conflict}' if conflict else ''}"
            fix = f"{'delete the CRD with these names, and then ' if conflict else ''}{_install_command(facts)}"
            yield CheckResult("LWS-D203", Level.ERROR, "definitions", text, fix)
        elif (difference := crd_difference(existing, definition)) is not None:
            text = f"{name} does not match this version of lws: {difference}"
            yield CheckResult("LWS-D204", Level.WARNING, "definitions", text, _install_command(facts))
        else:
            good += 1
    if good:
        text = f"{good} of {len(facts.own_definitions)} match this version of lws"
        yield CheckResult("LWS-D205", Level.OK, "definitions", text)


def crd_difference(existing: JSONObject, definition: JSONObject) -> str | None:
    """Return the difference in API versions or spec fields between a CRD and this version.

    Return None if they are equal.
    """
    for version in meta.spec(definition)["versions"]:
        other = installationhealth.find_version(existing, version["name"])
        if other is None:
            return f"it does not serve {version['name']}"
        if missing := installationhealth.missing_fields(version, other):
            return f"it does not have {_name_fields(missing)}"
        if more := installationhealth.missing_fields(other, version):
            return f"it has {_name_fields(more)}, which this version of lws does not support"
    return None


def _name_fields(names: Sequence[str]) -> str:
    return f"the {'field' if len(names) == 1 else 'fields'} {join_names(names, 3)}"


def _check_webhooks(facts: ClusterState) -> Iterator[CheckResult]:
    there = True
    for name in (MUTATING_NAME, VALIDATING_NAME):
        configuration = facts.configurations.get(name)
        if isinstance(configuration, UnreadableObject):
            yield _unreadable_result("LWS-D301", "webhooks", f"{name} cannot be read: {configuration.reason}")
        elif configuration is None:
            there = False
            text = f"{name} is missing, so LeaderWorkerSets and pods are neither validated nor mutated"
            yield CheckResult("LWS-D302", Level.ERROR, "webhooks", text, _install_command(facts))
        elif without := [
            hook["name"]
            for hook in configuration.get("webhooks") or []
            if not (hook.get("clientConfig") or {}).get("caBundle")
        ]:
            there = False
            text = f"{name} has no caBundle for {', '.join(without)}, so the API server cannot trust the webhooks"
            fix = "restart the manager, which writes the caBundle, or check the injector of cert-manager"
            yield CheckResult("LWS-D303", Level.ERROR, "webhooks", text, fix)
    if facts.probe is None:
        if there:
            yield CheckResult("LWS-D304", Level.OK, "webhooks", "a LeaderWorkerSet was admitted in a dry run")
    elif WEBHOOK_NOT_CALLED in facts.probe:
        hints = (hint for pattern, hint in PROBE_HINTS.items() if re.search(pattern, facts.probe))
        fix = next(hints, "check the logs of the manager")
        yield CheckResult("LWS-D305", Level.ERROR, "webhooks", facts.probe, fix)
    else:
        text = f"a dry run was rejected: {facts.probe}"
        fix = "use an account with permission to create LeaderWorkerSets"
        yield CheckResult("LWS-D306", Level.UNKNOWN, "webhooks", text, fix)


def _check_certificates(facts: ClusterState, now: datetime) -> Iterator[CheckResult]:
    if isinstance(facts.certificates, UnreadableObject):
        yield _unreadable_result("LWS-D401", "certificates", f"cannot be read: {facts.certificates.reason}")
        return
    for certificate in facts.certificates:
        ends = f"{certificate.expires_at:%Y-%m-%d %H:%M} UTC"
        if certificate.expires_at <= now:
            fix = "restart the manager, which renews the certificate, or check the Certificate of cert-manager"
            yield CheckResult("LWS-D402", Level.ERROR, "certificates", f"{certificate.name} expired at {ends}", fix)
        elif certificate.expires_at - now <= SOON:
            fix = "check the logs of the manager, because the renewal is overdue"
            yield CheckResult(
                "LWS-D403", Level.WARNING, "certificates", f"{certificate.name} expires soon, at {ends}", fix
            )
        else:
            yield CheckResult("LWS-D404", Level.OK, "certificates", f"{certificate.name} is valid until {ends}")


def _unreadable_result(code: str, subject: str, text: str) -> CheckResult:
    """Return the result for an object that could not be read because the user has no permission."""
    return CheckResult(code, Level.UNKNOWN, subject, text, "ask an administrator")


def _check_manager(facts: ClusterState, now: datetime) -> Iterator[CheckResult]:
    if facts.is_embedded:
        yield CheckResult("LWS-D500", Level.OK, "manager", "runs in the embedded cluster")
        return
    yield _check_deployment(facts)
    if facts.other_namespaces:
        text = f"managers are also installed in {join_names(facts.other_namespaces, 3)}, and the webhooks refer to the manager in {facts.namespace}"
        fix = "uninstall all but one of them, because they write the same objects"
        yield CheckResult("LWS-D516", Level.ERROR, "manager", text, fix)
    yield _check_lease(facts, now)


def _check_deployment(facts: ClusterState) -> CheckResult:
    deployment, name = facts.deployment, f"deployment {facts.namespace}/{metadata.MANAGER}"
    if isinstance(deployment, UnreadableObject):
        return _unreadable_result("LWS-D501", "manager", f"{name} cannot be read: {deployment.reason}")
    if deployment is None:
        text = f"{name} is missing, so LeaderWorkerSets are not reconciled unless a manager runs outside the cluster"
        return CheckResult("LWS-D502", Level.WARNING, "manager", text, _install_command(facts))
    ready, desired = installationhealth.replica_counts(deployment)
    text = f"{name} has {ready} of {desired} pods ready"
    if not desired:
        text += ", because it is scaled to 0"
        return CheckResult("LWS-D503", Level.ERROR, "manager", text, installationhealth.scale_up_step(deployment))
    if ready >= desired:
        return CheckResult("LWS-D504", Level.OK, "manager", text)
    reasons = [(meta.name(pod), why) for pod in facts.managers if (why := podstate.waiting_reason(pod))]
    text += "".join(f"; {pod}: {why}" for pod, why in reasons[:1])
    fix = f"collect the states, events and logs of its pods with `{facts.lws} must-gather`"
    code, level = ("LWS-D504", Level.WARNING) if ready else ("LWS-D503", Level.ERROR)
    return CheckResult(code, level, "manager", text, fix)


def _check_lease(facts: ClusterState, now: datetime) -> CheckResult:
    lease, name = facts.lease, f"lease {facts.namespace}/{metadata.LEASE}"
    if isinstance(lease, UnreadableObject):
        return _unreadable_result("LWS-D511", "leader", f"{name} cannot be read: {lease.reason}")
    if lease is None:
        text = f"{name} is missing, so no manager has been the leader"
        fix = "check the logs of the manager; this is expected if leader election is disabled"
        return CheckResult("LWS-D512", Level.WARNING, "leader", text, fix)
    holder = installationhealth.lease_holder(lease)
    if state := installationhealth.lease_state(lease, now):
        fix = f"check the pods and logs of the manager{'; if a replica is running, it becomes the leader' if holder else ''}"
        code = "LWS-D514" if holder else "LWS-D513"
        return CheckResult(code, Level.ERROR, "leader", f"{state}, so LeaderWorkerSets are not reconciled", fix)
    return CheckResult("LWS-D515", Level.OK, "leader", f"{holder} is the leader")


def _check_accesses(facts: ClusterState) -> Iterator[CheckResult]:
    if isinstance(facts.accesses, UnreadableObject):
        yield _unreadable_result("LWS-D601", "permissions", f"unknown: {facts.accesses.reason}")
        return
    denied = [f"{access.verb} {access.resource}" for access in facts.accesses if not access.is_allowed]
    if denied:
        text = f"you are not permitted to {', '.join(denied)}"
        fix = "request a role with these verbs, because some commands fail without them"
        yield CheckResult("LWS-D602", Level.WARNING, "permissions", text, fix)
    else:
        yield CheckResult("LWS-D603", Level.OK, "permissions", "you have all required permissions")


def _check_feature_gates(facts: ClusterState, now: datetime) -> Iterator[CheckResult]:
    for component, group in dict(featuregates.disabled_gates(facts.pod_groups, facts.pods, now)).items():
        text = (
            f"the native gang scheduling feature gate is disabled; {featuregates.describe_evidence(component, group)}"
        )
        yield CheckResult("LWS-D702", Level.ERROR, "feature gates", text, featuregates.REMEDIES[component])
    if isinstance(facts.gates, UnreadableObject):
        return  # only administrators may read them, and the version is usually sufficient
    needed = {"StatefulSetStartOrdinal": "the workers of each group must start at ordinal 1"}
    if facts.provider in NATIVE:
        needed["GenericWorkload"] = "kube-apiserver does not serve PodGroups, and drops references to them"
    for name, why in needed.items():
        if facts.gates.get(name) is False:
            text = f"feature gate {name} is disabled: {why}"
            fix = f"start kube-apiserver with --feature-gates={name}=true"
            yield CheckResult("LWS-D701", Level.ERROR, "feature gates", text, fix)


def _check_schedulers(facts: ClusterState) -> Iterator[CheckResult]:
    served = sorted(name for name, there in facts.served.items() if there and name not in OTHERS)
    if isinstance(facts.provider, UnreadableObject):
        yield _unreadable_result(
            "LWS-D801", "gang scheduling", f"the configuration cannot be read: {facts.provider.reason}"
        )
    elif facts.provider in facts.served and not facts.served[facts.provider]:
        text = f"the manager is configured for {facts.provider}, but the API server does not serve its kinds"
        add = (
            featuregates.REMEDIES[featuregates.API_SERVER] if facts.provider in NATIVE else f"install {facts.provider}"
        )
        fix = f"{add}, or remove {facts.provider} from the manager configuration"
        yield CheckResult("LWS-D802", Level.ERROR, "gang scheduling", text, fix)
    elif facts.provider:
        text = f"provided by {facts.provider}; served: {', '.join(served) or 'none'}"
        yield CheckResult("LWS-D803", Level.OK, "gang scheduling", text)
    elif served:
        text = f"{', '.join(served)} is available, but the manager is not configured for gang scheduling"
        yield CheckResult("LWS-D804", Level.NOTE, "gang scheduling", text)


def _check_kueue(facts: ClusterState) -> Iterator[CheckResult]:
    if facts.queues and not facts.served.get("kueue"):
        text = f"{', '.join(facts.queues[:3])} specify a queue, but Kueue is not installed"
        fix = "install Kueue, or remove the label kueue.x-k8s.io/queue-name"
        yield CheckResult("LWS-D901", Level.WARNING, "Kueue", text, fix)
    elif facts.queues:
        text = f"{', '.join(facts.queues[:3])} specify a LocalQueue that does not exist in their namespace"
        yield CheckResult(
            "LWS-D902", Level.ERROR, "Kueue", text, "create the LocalQueue, because pods remain gated without it"
        )
    elif facts.served.get("kueue"):
        yield CheckResult("LWS-D903", Level.OK, "Kueue", "is served, and all specified queues exist")
