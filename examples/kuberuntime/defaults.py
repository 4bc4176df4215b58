"""A controller that creates a ConfigMap `defaults` with the team name in every namespace with the label `team`.

python examples/kuberuntime/defaults.py [KUBECONFIG]
"""

import asyncio
import os
import socket
import sys

from kuberuntime.access import kubeconfig
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.requests import Selection
from kuberuntime.clock import SystemClock
from kuberuntime.controller.controller import Controller, Watch
from kuberuntime.controller.eventrecorder import EventRecorder
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, NAMESPACES
from kuberuntime.plan import Apply, Plan

NAME = "defaults"


async def run(client: Client) -> None:
    namespaces = Informer(client, Selection(NAMESPACES, label_selector="team"))
    copies = Informer(client, Selection(CONFIG_MAPS, field_selector=f"metadata.name={NAME}"))

    async def plan(key: ObjectKey) -> Plan:
        """Return the writes for one namespace, or no writes if it is up to date."""
        namespace = namespaces.store.get(key)
        if namespace is None:
            return Plan()
        wanted = {"team": meta.labels(namespace)["team"]}
        found = copies.store.get(ObjectKey(key.name, NAME))
        if found is not None and found.get("data") == wanted:
            return Plan()
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": key.name, "name": NAME}}
        return Plan((Apply(resource=CONFIG_MAPS, object={**content, "data": wanted}, manager="team-defaults"),))

    def namespace_of(change: Change) -> list[ObjectKey]:
        return [ObjectKey("", meta.namespace(change.object))]

    watches = [Watch(namespaces, lambda change: [meta.key(change.object)]), Watch(copies, namespace_of)]
    clock = SystemClock()
    events = EventRecorder(client, "team-defaults", socket.gethostname(), clock)
    controller = Controller("defaults", watches=watches, plan=plan, executor=Executor(client, events, clock))
    await Manager(informers=[namespaces, copies], runnables=[events, controller]).run()


async def main() -> None:
    access = kubeconfig.load(os.environ, kubeconfig=sys.argv[1] if sys.argv[1:] else "")
    client = Client(HTTPTransport(access, user_agent="team-defaults"))
    try:
        await run(client)
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
