"""Implements the operator's controllers for the operand and for the log verbosity.

All objects that are read are watched, so that drift is corrected within seconds. These are the object `cluster`, the
objects with the labels of an installation, the Secrets that cert-manager issues, and the kinds that CRDs establish
(R-OP-13).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import structlog
from msgspec.structs import replace

from kuberuntime.cache.informer import Change
from kuberuntime.cache.projection import Projection
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, select_one
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.errors import APIError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, Resource
from kuberuntime.plan import Emit, Event, Plan
from kuberuntime.policyrules import Permission
from leaderworkerset.api import groupname, labels, metadata
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core.restarts import retention
from leaderworkerset.install.operatornames import OPERATOR, OPERATORS, SINGLETON, SPEC_HASH
from leaderworkerset.operator import operand, operatorstatus, sync
from leaderworkerset.operator.driftcorrection import Difference, Live, content, is_frozen, merge_live_fields
from leaderworkerset.operator.openshift import API_SERVERS, CLUSTER, INFRASTRUCTURES
from leaderworkerset.operator.operand import Objects, OperatorPlace
from leaderworkerset.operator.operatorspec import operator_verbosity
from leaderworkerset.operator.sync import ObservedOperand
from leaderworkerset.operator.verbosity import Verbosity
from leaderworkerset.webhooks import admissionprobe
from leaderworkerset.webhooks.configurations import SECRET_NAME

SOON: Final = 10.0
"""The interval in seconds for checking preserved pods."""

LATER: Final = 300.0
"""The check interval in seconds if there are no preserved pods. A terminating manager can still preserve a pod."""


class RetainedPodReleaser:
    """Releases pods that are preserved as evidence while no manager is installed (N-RB-16).

    It uses the permissions that the operator grants. Pods of remaining LeaderWorkerSets are kept, because without a
    manager, their StatefulSets would create only leaders.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def release(self) -> Plan:
        """Return a plan that removes the finalizers, first from workers and then from leaders."""
        pods = await self._client.list(PODS, label_selector=labels.NAME)
        kept = [pod for pod in pods.items if retention.is_retained(pod)]
        if not kept:
            return Plan(requeue_after=LATER)
        living = await self._remaining_sets()
        ending = {
            namespace for namespace in {meta.namespace(pod) for pod in kept} if await self._is_terminating(namespace)
        }
        free = [pod for pod in kept if groupname.lws_key(pod) not in living or meta.namespace(pod) in ending]
        return Plan(retention.remove_finalizer(free), requeue_after=SOON)

    async def _remaining_sets(self) -> set[ObjectKey]:
        """Return the remaining LeaderWorkerSets, or none if their CRD does not exist."""
        try:
            listing = await self._client.list(LEADERWORKERSETS)
        except NotFoundError:
            return set()
        return {meta.key(lws) for lws in listing.items if not meta.is_deleting(lws)}

    async def _is_terminating(self, namespace: str) -> bool:
        obj = await self._client.find(NAMESPACES, ObjectKey("", namespace))
        return obj is None or meta.is_deleting(obj)


class Comparison:
    """Compares existing objects with dry-run results for the desired objects (R-OP-25).

    Defaults, allocated fields and changes by admission are not differences, so the API server computes the result,
    without a write (`dryRun`). It is requested again only if the desired object or the version of the live object
    changes.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._settled: dict[tuple[Resource, ObjectKey], tuple[str, str]] = {}

    async def find_differences(self, objects: Objects, live: Live) -> list[Difference]:
        """Return the desired objects that are missing or different, in order."""
        differences = []
        for kind, obj in objects:
            place = kind, meta.key(obj)
            # It may exist without the labels that the caches select.
            now = live.get(place) or await self._client.find(*place)
            if now is None or is_frozen(kind, obj, now):
                differences.append(Difference(kind, obj, now, must_recreate=now is not None))
                continue
            state = meta.annotations(obj)[SPEC_HASH], meta.resource_version(now)
            if self._settled.get(place) == state:
                continue
            target = merge_live_fields(kind, obj, now)
            if await self._is_changed(kind, target, now):
                differences.append(Difference(kind, target, now))
            else:
                self._settled[place] = state
        return differences

    async def _is_changed(self, kind: Resource, target: JSONObject, live: JSONObject) -> bool:
        try:
            return content(await self._client.update(kind, target, dry_run=True)) != content(live)
        except APIError:
            return True  # the write is also rejected, and the status reports it


TARGET_CONFIG: Final = "TargetConfigController"
LOGGING: Final = "LoggingSyncer"

INSTALLED: Final = ",".join(f"{name}={text}" for name, text in sorted(metadata.LABELS.items()))
"""The selector for objects of all installations. The operator also manages objects from other installers."""

ISSUED: Final = Projection("data['tls.crt']", "data['tls.key']")
DEFINED: Final = Projection(
    "spec.group",
    "spec.names.plural",
    "spec.versions[].name",
    "spec.versions[].served",
    "status.conditions[].type",
    "status.conditions[].status",
)

CLUSTERS: Final = Cache(Selection(OPERATORS))
API_SERVER: Final = Cache(
    select_one(API_SERVERS, CLUSTER), keep=lambda _obj: Projection("spec.tlsSecurityProfile"), is_optional=True
)
INFRASTRUCTURE: Final = Cache(
    select_one(INFRASTRUCTURES, CLUSTER), keep=lambda _obj: Projection("status.controlPlaneTopology"), is_optional=True
)
"""The OpenShift infrastructure object. Other clusters do not serve this kind."""

DEFINITIONS: Final = Cache(Selection(CUSTOM_RESOURCE_DEFINITIONS), keep=lambda _obj: DEFINED)

Served: TypeAlias = Mapping[str, asyncio.Event]
"""The optional kinds (`plural.group`). The event of a kind is set while the kind is served."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def operand_cache(kind: Resource, namespace: str) -> Cache:
    """Return the cache of operand objects of one kind, including objects that were installed before the operator."""
    if kind == SECRETS:  # restricted to one name, so that other secrets in the namespace cannot be read
        return Cache(select_one(SECRETS, ObjectKey(namespace, SECRET_NAME)))
    return Cache(Selection(kind, namespace if kind.namespaced else "", INSTALLED), is_optional=kind in operand.OPTIONAL)


def secret_cache(name: str, namespace: str) -> Cache:
    """Return the cache of one cert-manager Secret, which does not have the installation labels."""
    return Cache(select_one(SECRETS, ObjectKey(namespace, name)), keep=lambda _obj: ISSUED)


class OperatorDriver(Driver):
    """Observes the `cluster` object and the operand.

    Sets the events in `served` while CRDs establish the kinds.
    """

    def __init__(
        self,
        place: OperatorPlace,
        served: Served,
        caches: Caches,
        client: Client,
        clock: Clock,
    ) -> None:
        self._place = place
        self._served = served
        self._clock = clock
        self._client = client
        self._comparison = Comparison(client)
        self._evidence = RetainedPodReleaser(client)
        self._clusters = caches[CLUSTERS]
        self._definitions = caches[DEFINITIONS]
        self._api_server = caches[API_SERVER]
        self._infrastructure = caches[INFRASTRUCTURE]
        self._owned = {kind: caches[operand_cache(kind, place.namespace)] for kind in operand.ORDER}
        self._issued = {name: caches[secret_cache(name, place.namespace)] for name in operand.ISSUED.values()}

    async def plan(self, key: ObjectKey) -> Plan:
        """Reconcile the `cluster` object. Objects with other names can be stored, but are ignored (R-OP-2)."""
        if key != SINGLETON:
            log.warning("Ignored, because only the object named cluster is supported", object=str(key))
            return Plan()
        observed = self.observe()
        if observed.cluster is not None and operatorstatus.may_become_available(observed.cluster, observed.deployment):
            observed = replace(observed, unreachable=await admissionprobe.obstacle(self._client, self._place.namespace))
        target = sync.decide(observed, self._place)
        if target is None or (target.desired.is_removed and observed.deployment is None):
            release = await self._evidence.release()
            if target is None or release.actions:
                return release
        differences = await self._comparison.find_differences(target.objects if target else (), observed.live)
        return sync.reconcile(observed, target, differences, self._place, self._clock.now())

    def observe(self) -> ObservedOperand:
        """Collect the cached objects."""
        live = {(kind, meta.key(obj)): obj for kind, informer in self._owned.items() for obj in informer.store.list()}
        secrets = {name: obj for name, informer in self._issued.items() for obj in informer.store.list()}
        return ObservedOperand(
            cluster=self._clusters.store.get(SINGLETON),
            live=live,
            secrets=secrets,
            served=frozenset(name for crd in self._definitions.store.list() for name in established_kind(crd)),
            api_server=self._api_server.store.get(CLUSTER),
            infrastructure=self._infrastructure.store.get(CLUSTER),
        )

    def watches(self) -> Sequence[Watch]:
        """Return the watches. All changes enqueue the `cluster` object."""
        return (
            Watch(self._clusters, lambda change: (meta.key(change.object),)),
            Watch(self._definitions, self._map_definition),
            *(Watch(informer, lambda _change: (SINGLETON,)) for informer in (self._api_server, self._infrastructure)),
            *(Watch(informer, lambda _change: (SINGLETON,)) for informer in self._owned.values()),
            *(Watch(informer, lambda _change: (SINGLETON,)) for informer in self._issued.values()),
        )

    def _map_definition(self, change: Change) -> Iterable[ObjectKey]:
        """Map a CRD to the `cluster` object if its kind is now served or no longer served."""
        before, after = (() if crd is None else established_kind(crd) for crd in (change.old, change.new))
        for name in self._served.keys() & {*before, *after}:
            (self._served[name].set if name in after else self._served[name].clear)()
        return (SINGLETON,) if before != after else ()


def established_kind(definition: JSONObject) -> tuple[str, ...]:
    """Return the kind (`plural.group`) that a CRD serves in version v1, or an empty string if it serves none."""
    spec = meta.spec(definition)
    serves = any(version.get("name") == "v1" and version.get("served") for version in spec.get("versions") or [])
    if not (serves and meta.is_condition_true(definition, "Established")) or meta.is_deleting(definition):
        return ()
    return (f"{spec['names']['plural']}.{spec['group']}",)


class LoggingDriver(Driver):
    """Applies `operatorLogLevel` (R-OP-27)."""

    def __init__(self, verbosity: Verbosity, namespace: str, caches: Caches) -> None:
        self._verbosity = verbosity
        self._namespace = namespace
        self._is_first = True
        self._clusters = caches[CLUSTERS]

    async def plan(self, key: ObjectKey) -> Plan:
        """Set the verbosity, and emit an event if a previously set value changes."""
        cluster = self._clusters.store.get(key) if key == SINGLETON else None
        if cluster is None:
            return Plan()
        level, before = operator_verbosity(cluster), self._verbosity.level
        self._verbosity.level = level
        is_first, self._is_first = self._is_first, False
        if level == before or is_first:
            return Plan()
        note = f"Operator log level changed from {before} to {level}"
        names: Mapping[str, str] = {**DEPLOYMENTS.type_meta}
        regarding = {**names, "namespace": self._namespace, "name": OPERATOR}
        return Plan((Emit(events=(Event("Normal", "OperatorLogLevelChange", "Reconcile", note, regarding),)),))

    def watches(self) -> Sequence[Watch]:
        """Return the watches."""
        return (Watch(self._clusters, lambda change: (meta.key(change.object),)),)


def writes(place: OperatorPlace) -> tuple[Permission, ...]:
    """Return the write permissions, which are restricted to objects of an installation.

    Objects are created by server-side apply, the only request for which a role can restrict `create` to names.
    """
    names: dict[Resource, set[str]] = {}
    for kind, key in operand.possible_objects(place):
        names.setdefault(kind, set()).add(key.name)
    keep, remove = ("create", "get", "patch", "update"), ("delete",)
    return (
        Permission(OPERATORS, ("patch",), names=(SINGLETON.name,)),
        Permission(OPERATORS, ("patch", "update"), "status", names=(SINGLETON.name,)),
        *(
            Permission(kind, keep if kind == CUSTOM_RESOURCE_DEFINITIONS else keep + remove, names=tuple(names[kind]))
            for kind in operand.ORDER
        ),
    )


def controllers(place: OperatorPlace, verbosity: Verbosity) -> tuple[ControllerSpec, ...]:
    """Return both controllers of an operator with these settings."""
    served = {kind.group_resource: asyncio.Event() for kind in (*operand.OPTIONAL, API_SERVERS, INFRASTRUCTURES)}

    def build(caches: Caches, client: Client, clock: Clock) -> OperatorDriver:
        return OperatorDriver(place, served, caches, client, clock)

    def build_logging(caches: Caches, client: Client, clock: Clock) -> LoggingDriver:
        del client, clock
        return LoggingDriver(verbosity, place.namespace, caches)

    reads = (
        CLUSTERS,
        DEFINITIONS,
        API_SERVER,
        INFRASTRUCTURE,
        *(operand_cache(kind, place.namespace) for kind in operand.ORDER),
        *(secret_cache(name, place.namespace) for name in operand.ISSUED.values()),
    )
    following = tuple(replace(cache, served=served.get(cache.selection.resource.group_resource)) for cache in reads)
    return (
        ControllerSpec(name=TARGET_CONFIG, caches=following, build=build, writes=writes(place)),
        ControllerSpec(name=LOGGING, caches=(CLUSTERS,), build=build_logging, writes=()),
    )
