"""Tests that a kind in this file works like a real kind, because of its registry entry alone.

A Widget has a text. Its webhook fills in a missing text; its controller keeps a ConfigMap with it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import pytest
from prometheus_client import CollectorRegistry, Counter
from tests.permissions import PLURALS, RecordingTransport, missing, unused

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.plan import Apply, Event, Plan
from kuberuntime.policyrules import Permission, policy_rules
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.instruments import Meter
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager import lwsmanager
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.webhooks.review import Review
from leaderworkerset.webhooks.spec import WebhookSpec
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

LIMIT = 30.0
"""The timeout for all conditions in seconds."""

WIDGETS = Resource("tests.example.com", "v1", "widgets", "Widget")
WIDGET_CACHE = Cache(Selection(WIDGETS))
MADE_CACHE = Cache(Selection(CONFIG_MAPS, label_selector="widget"))


def define() -> JSONObject:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"text": {"type": "string"}}}},
    }
    names = {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS.group_resource},
        "spec": {"group": WIDGETS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def fill_text(review: Review) -> JSONObject:
    return review.object | {"spec": {"text": "hello"} | meta.spec(review.object)}


class WidgetDriver(Driver):
    """Creates one ConfigMap for each Widget."""

    def __init__(self, caches: Caches, _client: Client, _clock: Clock) -> None:
        self._widgets = caches[WIDGET_CACHE]
        self._made = caches[MADE_CACHE]

    async def plan(self, key: ObjectKey) -> Plan:
        widget = self._widgets.store.get(key)
        if widget is None:
            return Plan()
        wanted: JSONObject = {"text": meta.spec(widget)["text"]}
        made = self._made.store.get(key)
        if made is not None and made.get("data") == wanted:
            return Plan()
        metadata = {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"widget": key.name},
            "ownerReferences": [meta.controller_reference(widget)],
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": wanted}
        reference = {"apiVersion": "tests.example.com/v1", "kind": "Widget", "name": key.name}
        event = Event("Normal", "Made", "Make", "made", reference | {"namespace": key.namespace})
        return Plan((Apply(resource=CONFIG_MAPS, object=body, manager="widgets", on_success=(event,)),))

    def watches(self) -> Sequence[Watch]:
        return (Watch(self._widgets, self._keys), Watch(self._made, self._keys))

    def _keys(self, change: Change) -> Iterable[ObjectKey]:
        return (meta.key(change.object),)


class WidgetMetrics:
    """Counts the events of Widgets."""

    def __init__(self, meter: Meter) -> None:
        registry = CollectorRegistry()
        self._made = Counter("widgets_made_total", "ConfigMaps made.", registry=registry)
        meter.register(registry)

    def count_event(self, event: Event) -> None:
        if event.reason == "Made":
            self._made.inc()

    @contextmanager
    def export_metrics(self, _caches: Caches) -> Iterator[None]:
        yield


WIDGET = Kind(
    resource=WIDGETS,
    definition=Definition(define, lambda _document: define()),
    controllers=(
        ControllerSpec(
            name="widget",
            caches=(WIDGET_CACHE, MADE_CACHE),
            build=WidgetDriver,
            writes=(
                Permission(CONFIG_MAPS, ("create", "patch")),
                Permission(WIDGETS, ("update",), "finalizers"),
            ),
        ),
    ),
    webhooks=(
        WebhookSpec(
            name="mwidget.tests.example.com",
            path="/mutate-widget",
            decide=fill_text,
            resource=WIDGETS,
            operations=("CREATE",),
            mutates=True,
        ),
    ),
    metrics=(WidgetMetrics,),
)
KINDS = MANAGED.with_kind(WIDGET)


@asynccontextmanager
async def api() -> AsyncIterator[ApiServer]:
    store = Store()
    server = ApiServer(store, builtin.kinds(), SystemClock())
    await server.start()
    try:
        async with asyncio.timeout(LIMIT):
            yield server
    finally:
        await server.close()
        store.close()


async def create_widget(client: Client, **spec: str) -> JSONObject:
    metadata = {"name": "w", "namespace": "default"}
    body = {"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
    return await client.create(WIDGETS, body)


async def until_made(client: Client, text: str) -> None:
    """Wait until the ConfigMap of the Widget contains this string."""
    informer, changed = Informer(client, CONFIG_MAPS), asyncio.Event()
    informer.subscribe(lambda _: changed.set())
    export_metrics = asyncio.create_task(informer.run())
    while (informer.store.get(ObjectKey("default", "w")) or {}).get("data") != {"text": text}:
        await changed.wait()
        changed.clear()
    export_metrics.cancel()
    await asyncio.wait([export_metrics])


async def test_custom_kind_gets_definition_webhook_and_controller() -> None:
    async with api() as server:
        client = Client(InProcessTransport(server, "tester"))
        manager = Client(InProcessTransport(server, "manager"))
        async with (
            lwsmanager.webhooks(manager, SystemClock(), kinds=KINDS),
            lwsmanager.controllers(manager, SystemClock(), kinds=KINDS),
        ):
            await client.get(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", "widgets.tests.example.com"))
            assert meta.spec(await create_widget(client)) == {"text": "hello"}
            await until_made(client, "hello")
            change = {"spec": {"text": "changed"}}
            await client.patch(WIDGETS, ObjectKey("default", "w"), change, kind="merge")
            await until_made(client, "changed")


async def test_custom_controller_uses_exactly_its_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLURALS, "Widget", (WIDGETS.group, WIDGETS.plural))
    registry = Registry((WIDGET,))

    async def run(server: ApiServer, text: str, *, is_old: bool) -> RecordingTransport:
        transport = RecordingTransport(InProcessTransport(server, "manager"), is_old=is_old)
        client = Client(InProcessTransport(server, "tester"))
        controllers = Controllers(registry, Client(transport), clock=SystemClock(), instance="test")
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(controllers.run())
            await client.patch(WIDGETS, ObjectKey("default", "w"), {"spec": {"text": text}}, kind="merge")
            await until_made(client, text)
            controllers.stop()
            await running
        return transport

    async with api() as server:
        client = Client(InProcessTransport(server, "tester"))
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, define())
        await create_widget(client, text="first")
        needs = (await run(server, "second", is_old=False)).needs | (await run(server, "third", is_old=True)).needs
    assert missing(registry.permissions, needs) == []
    (controller,) = registry.controllers
    assert unused(controller.permissions, needs) == []


def test_custom_kind_is_installed_with_a_role() -> None:
    objects = {(resource, meta.name(obj)): obj for resource, obj in build_all(KINDS, InstallSettings())}
    assert (CUSTOM_RESOURCE_DEFINITIONS, WIDGETS.group_resource) in objects
    rules = objects[CLUSTER_ROLES, "lws-manager-role"]["rules"]
    (own,) = policy_rules([Permission(WIDGETS, ("list", "watch"))])
    assert own in rules
    mutating = objects[MUTATING_WEBHOOK_CONFIGURATIONS, "lws-mutating-webhook-configuration"]["webhooks"]
    assert [webhook["name"] for webhook in mutating] == [
        "mleaderworkerset.kb.io",
        "mpod.kb.io",
        "mwidget.tests.example.com",
    ]


async def test_custom_metrics_are_exposed() -> None:
    metrics = Metrics()
    async with api() as server:
        client = Client(InProcessTransport(server, "tester"))
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, define())
        await create_widget(client, text="first")
        registry = Registry((WIDGET,))
        controllers = Controllers(
            registry,
            client,
            clock=SystemClock(),
            instance="test",
            instruments=registry.instruments(metrics),
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(controllers.run())
            await until_made(client, "first")
            controllers.stop()
            await running
    text = metrics.render().decode()
    assert "widgets_made_total 1.0" in text
    assert 'controller_runtime_reconcile_total{controller="widget",result="success"}' in text
