"""The reconcile of the object `cluster`: from the observed state to a plan (R-OP-15 to R-OP-31).

```
absent, being deleted           nothing: the garbage collector removes what it owns
Unmanaged, Force, Removed       status only; Removed with its annotation removes the operand, except the definitions
cert-manager missing            status only: Degraded, MissingDependency
overrides that are refused      status only: SyncError
a TLS profile not recorded yet  it is written into the spec; the rest follows
else                            apply in order what differs, up to a certificate that is not issued yet;
                                delete what is not desired any more; status
```

A refused action ends the plan, and the status reports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.plan import Action, Apply, Event, EventType, Finally, Patch, Plan, PutStatus, guarded_delete
from leaderworkerset.install import metadata
from leaderworkerset.install.declared import Declared
from leaderworkerset.install.foreign import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.operator import covering, desired, openshift, operand, operatorstatus
from leaderworkerset.operator.desired import Desired
from leaderworkerset.operator.operand import Objects, OperatorPlace, Surroundings
from leaderworkerset.operator.operandconfig import OverrideError
from leaderworkerset.operator.operatornames import FIELD_MANAGER, OPERATOR, OPERATORS, OWNED_BY, OWNED_LABEL
from leaderworkerset.operator.operatorstatus import SyncOutcome

RESYNC: Final = 300.0
"""Seconds until everything is compared again without a change (R-OP-13)."""

MISSING: Final = (
    "cert-manager is not installed: its kinds Issuer and Certificate of cert-manager.io/v1 are not served; install it,"
    " or annotate this object with lws.x-k8s.io/certificates: internal"
)
NO_MONITOR: Final = "metrics are not scraped: the cluster serves no ServiceMonitor of monitoring.coreos.com/v1"

GONE: Final = {"minVersion": None, "cipherSuites": None}

Live: TypeAlias = Mapping[tuple[Resource, ObjectKey], JSONObject]

FIRST_REMOVED: Final = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
"""The kinds that would refuse writes of users without a manager, so they are removed first (R-OP-31)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedOperand:
    """The observed state of one reconcile.

    `live` are the objects with the labels of an installation, `secrets` those issued for it, `served` the kinds that
    definitions of this cluster establish (`plural.group`). `api_server` and `infrastructure` are OpenShift's objects;
    other clusters have neither.
    """

    cluster: JSONObject | None
    live: Live
    secrets: Mapping[str, JSONObject]
    served: frozenset[str]
    api_server: JSONObject | None = None
    infrastructure: JSONObject | None = None

    @property
    def deployment(self) -> JSONObject | None:
        """Return the Deployment of the operand."""
        found = (obj for (kind, key), obj in self.live.items() if kind == DEPLOYMENTS and key.name == metadata.MANAGER)
        return next(found, None)

    def serves(self, *kinds: Resource) -> bool:
        """Return whether the cluster serves all these kinds."""
        return all(kind.group_resource in self.served for kind in kinds)


def reconcile(observed: ObservedOperand, declared: Declared, place: OperatorPlace, now: datetime) -> Plan:
    """Decide about the object `cluster`."""
    cluster = observed.cluster
    if cluster is None or meta.is_deleting(cluster):
        return Plan()
    wanted = desired.read(cluster)
    reporter = _Reporter(cluster, observed.deployment, wanted, place, now)
    if not wanted.is_managed:
        removals = _removals(observed, place) if wanted.is_removed else ()
        return reporter.plan(removals, SyncOutcome(complete=False))
    if wanted.certificates == "cert-manager" and not observed.serves(ISSUERS, CERTIFICATES):
        return reporter.plan((), SyncOutcome(missing=MISSING, complete=False))
    around = Surroundings(
        hashes=_hashes(observed, wanted),
        tls=openshift.tls_section(observed.api_server),
        is_single=openshift.is_single(observed.infrastructure),
    )
    if around.tls and _noted_profile(cluster) != GONE | around.tls:
        return _note_profile(cluster, around.tls)
    try:
        objects = operand.build(declared, place, wanted, cluster, around)
    except OverrideError as error:
        return reporter.plan((), SyncOutcome(error=str(error), complete=False))
    monitored = observed.serves(SERVICE_MONITORS)
    wished = [(kind, obj) for kind, obj in objects if monitored or kind != SERVICE_MONITORS]
    due, waiting = _until_issued(wished, around.hashes)
    differing = _differing(due, observed.live)
    applies = [action for kind, obj, live in differing for action in _applies(kind, obj, live, place)]
    pruned = () if waiting else _pruned(objects, observed, declared, place)
    rolls = any(kind == DEPLOYMENTS and live and not covering.is_stamped(live, obj) for kind, obj, live in differing)
    outcome = SyncOutcome(error=waiting, note="" if monitored else NO_MONITOR, complete=not waiting, rolls=rolls)
    return reporter.plan((*applies, *pruned), outcome)


@dataclass(frozen=True, slots=True)
class _Reporter:
    """Builds a plan from actions and their outcome; it ends with the status."""

    cluster: JSONObject
    deployment: JSONObject | None
    wanted: Desired
    place: OperatorPlace
    now: datetime

    def plan(self, actions: Sequence[Action], outcome: SyncOutcome) -> Plan:
        """Return the plan: the actions, then the status of their success, or that of the first failed one."""
        status = self._status(outcome)
        current = meta.status(self.cluster)
        version = meta.resource_version(self.cluster)
        written = PutStatus(resource=OPERATORS, object=self.cluster | {"status": status}, resource_version=version)
        after = () if status == current else (written,)
        if not actions:
            return Plan(after, requeue_after=RESYNC)
        failed = self._status(SyncOutcome(error="{error}", complete=False))
        report = Patch(
            resource=OPERATORS,
            key=meta.key(self.cluster),
            patch={"metadata": {"uid": meta.uid(self.cluster)}, "status": failed},
            subresource="status",
            if_present=True,
        )
        return Plan((Finally(actions=(*actions, *after), after=(), on_failure=(report,)),), requeue_after=RESYNC)

    def _status(self, outcome: SyncOutcome) -> JSONObject:
        return operatorstatus.refresh(
            self.cluster, self.deployment, self.wanted, outcome, place=self.place, now=self.now
        )


def _note_profile(cluster: JSONObject, tls: JSONObject) -> Plan:
    """Return the plan that writes the observed TLS profile; the rest follows from the change."""
    # A merge patch would keep the suites of the previous profile.
    patch = {"metadata": {"uid": meta.uid(cluster)}, "spec": {"observedConfig": {"tls": {**GONE, **tls}}}}
    return Plan((Patch(resource=OPERATORS, key=meta.key(cluster), patch=patch, if_present=True),), requeue_after=RESYNC)


def _noted_profile(cluster: JSONObject) -> JSONObject:
    """Return the observed TLS profile; other fields of `observedConfig` are not the operator's."""
    noted = meta.spec(cluster).get("observedConfig")
    tls = noted.get("tls") if isinstance(noted, dict) else None
    return {name: tls.get(name) for name in GONE} if isinstance(tls, dict) else {}


def _hashes(observed: ObservedOperand, wanted: Desired) -> Mapping[str, str]:
    """Return the hash of every certificate to be issued, by its secret; empty until it is issued."""
    if wanted.certificates == "internal":
        return {}
    return {name: operand.certificate_hash(observed.secrets.get(name) or {}) for name in operand.ISSUED.values()}


def _until_issued(objects: Objects, hashes: Mapping[str, str]) -> tuple[Objects, str]:
    """Return the objects to apply now, and the awaited certificate: objects after one that is not issued are kept back."""
    for index, (kind, obj) in enumerate(objects):
        secret = operand.ISSUED.get(meta.name(obj), "") if kind == CERTIFICATES else ""
        if secret and not hashes[secret]:
            text = f"secret {meta.namespace(obj)}/{secret} lacks tls.crt or tls.key: cert-manager has not issued"
            return objects[: index + 1], f"{text} certificate {meta.name(obj)} yet"
    return objects, ""


def _differing(objects: Objects, live: Live) -> list[tuple[Resource, JSONObject, JSONObject | None]]:
    found = [(kind, obj, live.get((kind, meta.key(obj)))) for kind, obj in objects]
    return [(kind, obj, one) for kind, obj, one in found if one is None or not covering.covers(one, obj)]


def _pruned(objects: Objects, observed: ObservedOperand, declared: Declared, place: OperatorPlace) -> list[Action]:
    """Return the deletions of objects that are not desired any more; never of definitions.

    They were left by an earlier version, by another choice of certificates, or by an earlier installer.
    """
    wished = {(kind, meta.key(obj)) for kind, obj in objects}
    left = [
        (kind, obj)
        for (kind, key), obj in observed.live.items()
        if (kind, key) not in wished and kind != CUSTOM_RESOURCE_DEFINITIONS
    ]
    if not left:
        return []
    installed = operand.possible(declared, place)
    return [_delete(kind, obj, place) for kind, obj in left if is_owned(obj) or (kind, meta.key(obj)) in installed]


def _removals(observed: ObservedOperand, place: OperatorPlace) -> list[Action]:
    """Return the deletion of the whole operand except the definitions; webhooks first."""
    owned = [(kind, obj) for (kind, _), obj in observed.live.items() if is_owned(obj)]
    objects = [(kind, obj) for kind, obj in owned if kind != CUSTOM_RESOURCE_DEFINITIONS]
    ordered = sorted(objects, key=lambda one: (one[0] not in FIRST_REMOVED, -operand.ORDER[one[0]]))
    return [_delete(kind, obj, place) for kind, obj in ordered]


def is_owned(obj: JSONObject) -> bool:
    """Return whether the operator has applied an object."""
    return meta.labels(obj).get(OWNED_LABEL) == OWNED_BY


def _applies(kind: Resource, obj: JSONObject, live: JSONObject | None, place: OperatorPlace) -> list[Action]:
    """Return the writes that make a live object the desired one: lists that others changed are replaced first."""
    done, name = "Created" if live is None else "Updated", title(kind, obj)
    why = "it was missing" if live is None else "it differed"
    reason = f"{kind.kind}{done.removesuffix('d')}Failed"
    note = f"Failed to {'create' if live is None else 'update'} {name}: {{error}}"
    failed = (_event("Warning", reason, note, place),)
    written = (_event("Normal", f"{kind.kind}{done}", f"{done} {name} because {why}", place),)
    apply = Apply(resource=kind, object=obj, manager=FIELD_MANAGER, on_success=written, on_failure=failed)
    # Of another version, apply removes what the one before had. A Service with the ports of both is refused, though.
    may_replace = live is not None and (kind == SERVICES or covering.is_stamped(live, obj))
    lists = covering.replaced(live, obj) if live is not None and may_replace else {}
    if live is None or not lists:
        return [apply]
    seen = {name: meta.metadata(live)[name] for name in ("uid", "resourceVersion") if name in meta.metadata(live)}
    patch = lists | {"metadata": lists.get("metadata", {}) | seen}
    return [Patch(resource=kind, key=meta.key(obj), patch=patch, on_failure=failed, if_present=True), apply]


def _delete(kind: Resource, obj: JSONObject, place: OperatorPlace) -> Action:
    event = _event("Normal", f"{kind.kind}Deleted", f"Deleted {title(kind, obj)} because it is not desired", place)
    return guarded_delete(kind, obj, on_success=(event,))


def title(kind: Resource, obj: JSONObject) -> str:
    """Return the name of an object as `kubectl get` accepts it (R-OP-14).

    >>> title(DEPLOYMENTS, {"metadata": {"namespace": "lws", "name": "manager"}})
    'Deployment.apps/manager -n lws'
    """
    group = f".{kind.group}" if kind.group else ""
    namespace = f" -n {meta.namespace(obj)}" if meta.namespace(obj) else ""
    return f"{kind.kind}{group}/{meta.name(obj)}{namespace}"


def _event(kind: EventType, reason: str, note: str, place: OperatorPlace) -> Event:
    """Build an event about the Deployment of the operator, in the operator's own namespace."""
    regarding = {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "namespace": place.namespace,
        "name": OPERATOR,
    }
    return Event(kind, reason, "Reconcile", note, regarding)
