"""The least that a manager of groups must do, with the libraries of ours: a lower bound for `bench.scale created`.

    python -m bench.bare KUBECONFIG CERTIFICATES PORT

It allows every review, follows LeaderWorkerSets, StatefulSets and pods, creates the StatefulSets, and writes one status, when
all is ready. It keeps no objects and recovers from nothing: no caches, queues, revisions, services, events or lease, and of what
it is sent it decodes only the fields it needs. Whatever a manager on aiohttp and msgspec costs less than this, it leaves out.
"""

import asyncio
import base64
import ssl
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web
from msgspec import Raw, Struct

from kuberuntime import tlsbuffers

PREFIX: Final = "leaderworkerset.sigs.k8s.io/"
NAME: Final = f"{PREFIX}name"
WORKER_INDEX: Final = f"{PREFIX}worker-index"
LEADERWORKERSETS: Final = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
STATEFULSETS: Final = "/apis/apps/v1/statefulsets"
PODS: Final = "/api/v1/pods"
LINE_BYTES: Final = 2**22


class Metadata(Struct, rename="camel"):
    """The fields of `metadata` that are needed."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    labels: dict[str, str] = {}


class Template(Struct, rename="camel"):
    """How the groups of a LeaderWorkerSet look."""

    size: int
    worker_template: Raw


class Spec(Struct, rename="camel", frozen=True):
    """The spec of a LeaderWorkerSet, or that of a StatefulSet."""

    replicas: int = 0
    leader_worker_template: Template | None = None


class Status(Struct, rename="camel", frozen=True):
    """The status of a StatefulSet."""

    ready_replicas: int = 0


class Object(Struct):
    """A LeaderWorkerSet, a StatefulSet or a pod."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()


class Event(Struct):
    """A line of a watch."""

    type: str
    object: Object


class ReviewRequest(Struct):
    """What a review needs of its request."""

    uid: str


class Review(Struct):
    """A question of an API server."""

    request: ReviewRequest


REVIEWS: Final = msgspec.json.Decoder(Review)
EVENTS: Final = msgspec.json.Decoder(Event)


class Bare:
    """The manager, for LeaderWorkerSets that are created, and then left alone."""

    def __init__(self, session: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        self._session = session
        self._group = group
        self._sets: dict[str, Object] = {}
        self._ready: dict[str, set[str]] = {}

    async def follow(self, path: str) -> None:
        """Read a watch, and go on from where it ended; API servers end those that are slow to read."""
        handle = {LEADERWORKERSETS: self._lws, STATEFULSETS: self._statefulset, PODS: self._pod}[path]
        selector = "" if path == LEADERWORKERSETS else f"&labelSelector={NAME}"
        version = ""
        while True:
            async with self._session.get(f"{path}?watch=true&resourceVersion={version}{selector}") as answer:
                while line := await answer.content.readline():
                    event = EVENTS.decode(line)
                    version = event.object.metadata.resource_version
                    if event.type in ("ADDED", "MODIFIED"):
                        handle(event.type, event.object)

    def _lws(self, change: str, lws: Object) -> None:
        if change == "ADDED":
            self._sets[lws.metadata.name] = lws
            self._ready[lws.metadata.name] = set()
            owner = _owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", lws)
            self._create(lws, owner, "0", lws.spec.replicas)

    def _pod(self, change: str, pod: Object) -> None:
        lws = self._sets[pod.metadata.labels[NAME]]
        template = lws.spec.leader_worker_template
        if change == "ADDED" and template and pod.metadata.labels[WORKER_INDEX] == "0":
            self._create(lws, _owner("v1", "Pod", pod), "1", template.size - 1)

    def _statefulset(self, _: str, found: Object) -> None:
        lws = self._sets[found.metadata.labels[NAME]]
        ready = self._ready[lws.metadata.name]
        if found.status.ready_replicas == found.spec.replicas and found.metadata.name not in ready:
            ready.add(found.metadata.name)
            if len(ready) == lws.spec.replicas + 1:
                self._update(lws)

    def _update(self, lws: Object) -> None:
        metadata = {"name": lws.metadata.name, "resourceVersion": lws.metadata.resource_version}
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), lws.spec.replicas)
        body = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": metadata,
            "status": counts | {"observedGeneration": lws.metadata.generation},
        }
        path = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{lws.metadata.namespace}/leaderworkersets"
        self._send("PUT", f"{path}/{lws.metadata.name}/status", body)

    def _create(self, lws: Object, owner: dict[str, str], index: str, replicas: int) -> None:
        assert lws.spec.leader_worker_template
        name = owner["name"]
        labels = {NAME: lws.metadata.name, WORKER_INDEX: index, f"{PREFIX}leader-name": name}
        template = msgspec.json.decode(lws.spec.leader_worker_template.worker_template)
        body = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
            "spec": {
                "replicas": replicas,
                "serviceName": lws.metadata.name,
                "podManagementPolicy": "Parallel",
                "ordinals": {"start": int(index)},
                "selector": {"matchLabels": labels},
                "template": template | {"metadata": {"labels": labels}},
            },
        }
        path = f"/apis/apps/v1/namespaces/{lws.metadata.namespace}/statefulsets"
        self._send("POST", path, body)

    def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        self._group.create_task(self._sent(method, path, body))

    async def _sent(self, method: str, path: str, body: dict[str, Any]) -> None:
        headers = {"content-type": "application/json"}
        async with self._session.request(method, path, data=msgspec.json.encode(body), headers=headers) as answer:
            await answer.read()
            answer.raise_for_status()


def _owner(version: str, kind: str, obj: Object) -> dict[str, str]:
    return {"apiVersion": version, "kind": kind, "name": obj.metadata.name, "uid": obj.metadata.uid}


async def allow(request: web.Request) -> web.Response:
    """Allow what is asked for."""
    uid = REVIEWS.decode(await request.read()).request.uid
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": True}}
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


def session(kubeconfig: Path) -> aiohttp.ClientSession:
    """Return the session of a kubeconfig that is JSON; its token is never read anew."""
    config = msgspec.json.decode(kubeconfig.read_bytes())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return aiohttp.ClientSession(
        cluster["server"],
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority), limit=0),
        headers={"authorization": f"Bearer {Path(config['users'][0]['user']['tokenFile']).read_text()}"},
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=LINE_BYTES,
    )


async def run(kubeconfig: Path, certificates: Path, port: int) -> None:
    """Run until the process is ended; what fails ends it."""
    tlsbuffers.shrink()
    app = web.Application(client_max_size=LINE_BYTES)
    app.router.add_post("/{path:.*}", allow)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=serving).start()
    async with session(kubeconfig) as client, asyncio.TaskGroup() as group:
        bare = Bare(client, group)
        for path in (LEADERWORKERSETS, STATEFULSETS, PODS):
            group.create_task(bare.follow(path))


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
