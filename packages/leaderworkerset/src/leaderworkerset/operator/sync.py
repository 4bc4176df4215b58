"""Reconciles the `cluster` object by computing a plan from the observed state (R-OP-15 to R-OP-31).

```
absent, being deleted           nothing: the garbage collector removes what it owns
Unmanaged, Force, Removed       status only; Removed with its annotation removes the operand, except the definitions
cert-manager missing            status only: Degraded, MissingDependency
overrides that are refused      status only: SyncError
a TLS profile not recorded yet  it is written into the spec; the rest follows
else                            apply in order what differs, up to a certificate that is not issued yet;
                                delete what is not desired any more; status
```

If an action is rejected, the plan stops, and the status reports it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import (
    Action,
    Apply,
    Event,
    EventType,
    Finally,
    Plan,
    Put,
    PutStatus,
    guarded_delete,
    identified_patch,
)
from leaderworkerset.api import metadata
from leaderworkerset.core import decisionevents
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.install.operatornames import DELETE_CRDS, FIELD_MANAGER, OPERATOR, OPERATORS, OWNED_BY, OWNED_LABEL
from leaderworkerset.operator import openshift, operand, operatorspec, operatorstatus
from leaderworkerset.operator.driftcorrection import Difference, Live
from leaderworkerset.operator.operand import ClusterState, Objects, OperatorPlace
from leaderworkerset.operator.operandconfig import OverrideError
from leaderworkerset.operator.operatorspec import OperatorSettings
from leaderworkerset.operator.operatorstatus import SyncOutcome

RESYNC: Final = 300.0
"""The interval in seconds for comparing all objects when no change occurs (R-OP-13)."""

MISSING: Final = (
    "cert-manager is not installed. Install it, or annotate this object with lws.x-k8s.io/certificates: internal"
)
NO_MONITOR: Final = (
    "metrics are not scraped, because the cluster does not serve ServiceMonitor of monitoring.coreos.com/v1"
)

PROBE_AGAIN: Final = 1.0
"""The interval in seconds for probing webhooks of running managers, because network changes are not watched."""

GONE: Final = {"minVersion": None, "cipherSuites": None}

FIRST_REMOVED: Final = (resources.MUTATING_WEBHOOK_CONFIGURATIONS, resources.VALIDATING_WEBHOOK_CONFIGURATIONS)
"""The kinds that would reject requests of users without a manager, so that they are removed first (R-OP-31)."""


class ObservedOperand(Struct, frozen=True, kw_only=True):
    """The observed state for a reconciliation.

    `live` are the objects with the labels of an installation, `secrets` are the Secrets issued for it, and `served` are
    the kinds that CRDs in this cluster establish (`plural.group`). `api_server` and `infrastructure` are OpenShift
    objects, which other clusters do not have. `unreachable` is the reason why the API server does not reach the webhooks
    of running managers.
    """

    cluster: JSONObject | None
    live: Live
    secrets: Mapping[str, JSONObject]
    served: frozenset[str]
    api_server: JSONObject | None = None
    infrastructure: JSONObject | None = None
    unreachable: str = ""

    @property
    def deployment(self) -> JSONObject | None:
        """Return the Deployment of the operand."""
        deployments = (
            obj
            for (kind, key), obj in self.live.items()
            if kind == resources.DEPLOYMENTS and key.name == metadata.MANAGER
        )
        return next(deployments, None)

    def serves(self, *kinds: Resource) -> bool:
        """Return whether the cluster serves all of these kinds."""
        return all(kind.group_resource in self.served for kind in kinds)


class DesiredOperand(Struct, frozen=True, kw_only=True):
    """The desired operand before its comparison with the API server's dry-run results.

    `objects` are the objects to maintain, and `obsolete` are deleted. `tls` is a profile that must be recorded first.
    """

    desired: OperatorSettings
    outcome: SyncOutcome
    objects: Objects = ()
    obsolete: Objects = ()
    tls: JSONObject | None = None


def decide(observed: ObservedOperand, place: OperatorPlace) -> DesiredOperand | None:
    """Return the desired operand, or None if there is no `cluster` object."""
    cluster = observed.cluster
    if cluster is None or meta.is_deleting(cluster):
        return None
    settings = operatorspec.read(cluster)
    ending, unconfirmed = _crds_to_delete(observed, settings)
    outcome = SyncOutcome(
        is_complete=False, terminating=ending, unconfirmed=unconfirmed, unreachable=observed.unreachable
    )
    if not settings.is_managed:
        return DesiredOperand(
            desired=settings,
            outcome=outcome,
            obsolete=_removals(observed, place) if settings.is_removed else (),
        )
    if settings.certificates == "cert-manager" and not observed.serves(ISSUERS, CERTIFICATES):
        return DesiredOperand(desired=settings, outcome=replace(outcome, missing=MISSING))
    around = ClusterState(
        hashes=_hashes(observed, settings),
        tls=openshift.tls_section(observed.api_server),
        is_single=openshift.is_single(observed.infrastructure),
        terminating=frozenset(ending),
    )
    if around.tls and _recorded_profile(cluster) != GONE | around.tls:
        return DesiredOperand(desired=settings, outcome=outcome, tls=around.tls)
    try:
        objects = operand.build(place, settings, cluster, around)
    except OverrideError as error:
        return DesiredOperand(desired=settings, outcome=replace(outcome, error=str(error)))
    is_monitored = observed.serves(SERVICE_MONITORS)
    served_objects = [(kind, obj) for kind, obj in objects if is_monitored or kind != SERVICE_MONITORS]
    due, waiting = _objects_until_issued(served_objects, around.hashes)
    return DesiredOperand(
        desired=settings,
        outcome=replace(outcome, error=waiting, note="" if is_monitored else NO_MONITOR, is_complete=not waiting),
        objects=due,
        obsolete=() if waiting else _obsolete_objects(observed, place, kept=objects),
    )


def reconcile(
    observed: ObservedOperand,
    target: DesiredOperand | None,
    differences: Sequence[Difference],
    place: OperatorPlace,
    now: datetime,
) -> Plan:
    """Return the writes that update the operand to the desired state.

    `differences` are the differences of the target's `due` objects.
    """
    cluster = observed.cluster
    if cluster is None or target is None:
        return Plan()
    if target.tls is not None:
        return _record_profile(cluster, target.tls)
    writes = [action for difference in differences for action in _writes(difference, place)]
    deletions = [_delete(kind, obj, place) for kind, obj in target.obsolete]
    rolls = any(difference.kind == resources.DEPLOYMENTS and difference.live is not None for difference in differences)
    reporter = _Reporter(cluster, observed.deployment, target.desired, place, now)
    return reporter.plan((*writes, *deletions), replace(target.outcome, changes_deployment=rolls))


class _Reporter(Struct, frozen=True):
    """Builds a plan from actions and their outcome. The status is written last."""

    cluster: JSONObject
    deployment: JSONObject | None
    settings: OperatorSettings
    place: OperatorPlace
    now: datetime

    def plan(self, actions: Sequence[Action], outcome: SyncOutcome) -> Plan:
        """Return a plan with the actions, and with the status for success or for the first failure."""
        status = self._status(outcome)
        current = meta.status(self.cluster)
        version = meta.resource_version(self.cluster)
        status_write = PutStatus(resource=OPERATORS, object=self.cluster | {"status": status}, resource_version=version)
        after = () if status == current else (status_write,)
        again = PROBE_AGAIN if outcome.unreachable else RESYNC
        if not actions:
            return Plan(after, requeue_after=again)
        failed = self._status(
            replace(outcome, missing="", error="{error}", note="", is_complete=False, changes_deployment=False)
        )
        report = identified_patch(OPERATORS, self.cluster, {"status": failed}, subresource="status", if_present=True)
        return Plan((Finally(actions=(*actions, *after), after=(), on_failure=(report,)),), requeue_after=again)

    def _status(self, outcome: SyncOutcome) -> JSONObject:
        return operatorstatus.refresh(
            self.cluster, self.deployment, self.settings, outcome, place=self.place, now=self.now
        )


def _record_profile(cluster: JSONObject, tls: JSONObject) -> Plan:
    """Return a plan that writes the observed TLS profile. The change triggers the next reconciliation."""
    # A merge patch would preserve the cipher suites of the previous profile.
    change = {"spec": {"observedConfig": {"tls": {**GONE, **tls}}}}
    return Plan((identified_patch(OPERATORS, cluster, change, if_present=True),), requeue_after=RESYNC)


def _recorded_profile(cluster: JSONObject) -> JSONObject:
    """Return the observed TLS profile. The operator does not own other fields of `observedConfig`."""
    noted = meta.spec(cluster).get("observedConfig")
    tls = noted.get("tls") if isinstance(noted, dict) else None
    return {name: tls.get(name) for name in GONE} if isinstance(tls, dict) else {}


def _hashes(observed: ObservedOperand, settings: OperatorSettings) -> Mapping[str, str]:
    """Return the hashes of all requested certificates by Secret, or empty strings before they are issued."""
    if settings.certificates == "internal":
        return {}
    return {name: operand.certificate_hash(observed.secrets.get(name) or {}) for name in operand.ISSUED.values()}


def _objects_until_issued(objects: Objects, hashes: Mapping[str, str]) -> tuple[Objects, str]:
    """Return the objects to apply now, and the missing certificate that blocks later objects, or None."""
    for index, (kind, obj) in enumerate(objects):
        secret = operand.ISSUED.get(meta.name(obj), "") if kind == CERTIFICATES else ""
        if secret and not hashes[secret]:
            text = (
                f"Secret {meta.namespace(obj)}/{secret} does not contain tls.crt and tls.key, because cert-manager has "
                "not issued"
            )
            return objects[: index + 1], f"{text} certificate {meta.name(obj)} yet"
    return objects, ""


def _crds_to_delete(observed: ObservedOperand, settings: OperatorSettings) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the CRDs to delete with the object, and of the CRDs without the annotation.

    Each CRD also needs the annotation, because a user who may edit the object could otherwise delete all
    LeaderWorkerSets.
    """
    if not settings.deletes_definitions:
        return (), ()
    definitions = [obj for (kind, _), obj in observed.live.items() if kind == resources.CUSTOM_RESOURCE_DEFINITIONS]
    agree = sorted(meta.name(obj) for obj in definitions if meta.annotations(obj).get(DELETE_CRDS) == "true")
    return agree, sorted(meta.name(obj) for obj in definitions if meta.name(obj) not in agree)


def _obsolete_objects(observed: ObservedOperand, place: OperatorPlace, kept: Objects = ()) -> Objects:
    """Return existing objects that are no longer required, except for CRDs.

    They remain from a different certificate setting or an earlier installer. The operator may not delete other objects.
    """
    stays = {(kind, meta.key(obj)) for kind, obj in kept}
    surplus = [
        (kind, obj)
        for (kind, key), obj in observed.live.items()
        if (kind, key) not in stays and kind != resources.CUSTOM_RESOURCE_DEFINITIONS
    ]
    possible = operand.possible_objects(place) if surplus else ()
    return [(kind, obj) for kind, obj in surplus if (kind, meta.key(obj)) in possible]


def _removals(observed: ObservedOperand, place: OperatorPlace) -> Objects:
    """Return deletions of the complete operand except for the CRDs, starting with the webhooks."""
    owned = [(kind, obj) for kind, obj in _obsolete_objects(observed, place) if is_owned(obj)]
    return sorted(owned, key=lambda pair: (pair[0] not in FIRST_REMOVED, -operand.ORDER[pair[0]]))


def is_owned(obj: JSONObject) -> bool:
    """Return whether the operator has applied an object."""
    return meta.labels(obj).get(OWNED_LABEL) == OWNED_BY


def _writes(difference: Difference, place: OperatorPlace) -> list[Action]:
    """Return the writes for one object, which is created, replaced, or recreated if it cannot be updated."""
    kind, obj, live = difference.kind, difference.desired, difference.live
    verb, name = "Created" if live is None else "Updated", title(kind, obj)
    why = "it was missing" if live is None else "it differed"
    note = f"Failed to {'create' if live is None else 'update'} {name}: {{error}}"
    failure = (_event("Warning", f"{kind.kind}{verb.removesuffix('d')}Failed", note, place),)
    success = (_event("Normal", f"{kind.kind}{verb}", f"{verb} {name} because {why}", place),)
    if live is not None and not difference.must_recreate:
        slow = f"{{error}}, so {name} is updated only every 30 s"
        contended = (_event("Warning", decisionevents.CONTENTION, slow, place),)
        return [Put(resource=kind, object=obj, on_success=success, on_failure=failure, on_contention=contended)]
    apply = Apply(resource=kind, object=obj, manager=FIELD_MANAGER, on_success=success, on_failure=failure)
    return [apply] if live is None else [_delete(kind, live, place), apply]


def _delete(kind: Resource, obj: JSONObject, place: OperatorPlace) -> Action:
    event = _event(
        "Normal", f"{kind.kind}Deleted", f"Deleted {title(kind, obj)} because it is no longer required", place
    )
    return guarded_delete(kind, obj, on_success=(event,))


def title(kind: Resource, obj: JSONObject) -> str:
    """Return the name of an object in `kubectl get` format (R-OP-14).

    >>> title(resources.DEPLOYMENTS, {"metadata": {"namespace": "lws", "name": "manager"}})
    'Deployment.apps/manager -n lws'
    """
    group = f".{kind.group}" if kind.group else ""
    namespace = f" -n {meta.namespace(obj)}" if meta.namespace(obj) else ""
    return f"{kind.kind}{group}/{meta.name(obj)}{namespace}"


def _event(kind: EventType, reason: str, note: str, place: OperatorPlace) -> Event:
    """Build an event about the operator Deployment in the operator's namespace."""
    regarding = {
        **resources.DEPLOYMENTS.type_meta,
        "namespace": place.namespace,
        "name": OPERATOR,
    }
    return Event(kind, reason, "Reconcile", note, regarding)
