"""Implements a minimal group manager with the libraries of `lws manager`, as a limit for `bench.scale`.

    python -m bench.bare KUBECONFIG CERTIFICATES PORT

It allows every review, follows LeaderWorkerSets, StatefulSets and pods, creates, changes and deletes the necessary
objects, and writes a status whenever everything is ready. A rollout replaces a quarter of the groups at once, a group
that lost a worker is recreated. It has no caches, queues, revisions, services, events, conditions or lease, does not
recover from errors, and decodes only the fields that it needs. A manager on aiohttp and msgspec that uses less must
omit features.
"""

import asyncio
import base64
import ssl
import sys
from http import HTTPStatus
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
LEADER: Final = f"{PREFIX}leader-name"
LEADER_UID: Final = f"{PREFIX}leader-uid"
REVISION: Final = f"{PREFIX}revision"
LEADERWORKERSETS: Final = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
STATEFULSETS: Final = "/apis/apps/v1/statefulsets"
PODS: Final = "/api/v1/pods"
LINE_BYTES: Final = 2**22


class Metadata(Struct, rename="camel"):
    """The required fields of `metadata`."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class Template(Struct, rename="camel", frozen=True):
    """The group template of a LeaderWorkerSet."""

    size: int
    worker_template: Raw


class Spec(Struct, rename="camel", frozen=True):
    """The spec of a LeaderWorkerSet, or of a StatefulSet."""

    replicas: int = 0
    leader_worker_template: Template | None = None


class Status(Struct, rename="camel", frozen=True):
    """The status of a StatefulSet."""

    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class Object(Struct):
    """A LeaderWorkerSet, a StatefulSet or a pod."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()


class Event(Struct):
    """One line of a watch response."""

    type: str
    object: Object


class ReviewRequest(Struct):
    """The request fields that a review needs."""

    uid: str


class Review(Struct):
    """An AdmissionReview request."""

    request: ReviewRequest


REVIEWS: Final = msgspec.json.Decoder(Review)
EVENTS: Final = msgspec.json.Decoder(Event)


class Groups(Struct):
    """A LeaderWorkerSet, and the required data about its groups."""

    lws: Object
    revision: int = 1
    leaders: dict[str, str] = {}
    """The UIDs of the leader pods that are not being deleted."""
    workers: set[str] = set()
    """The leaders whose worker StatefulSet exists."""
    ready: set[str] = set()
    """The StatefulSets with this revision whose pods are all ready."""
    old: list[str] = []
    """The leaders that must still be replaced."""
    is_reported: bool = False
    """Whether all groups are ready, and the status reports it."""


class Bare:
    """The manager."""

    def __init__(self, session: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        self._session = session
        self._group = group
        self._sets: dict[str, Groups] = {}

    async def follow(self, path: str) -> None:
        """Follow a watch across reconnections, because API servers close watches of slow readers."""
        handle = {LEADERWORKERSETS: self._lws, STATEFULSETS: self._statefulset, PODS: self._pod}[path]
        selector = "" if path == LEADERWORKERSETS else f"&labelSelector={NAME}"
        version = ""
        while True:
            async with self._session.get(f"{path}?watch=true&resourceVersion={version}{selector}") as response:
                while line := await response.content.readline():
                    event = EVENTS.decode(line)
                    version = event.object.metadata.resource_version
                    if event.type in ("ADDED", "MODIFIED", "DELETED"):
                        handle(event.type, event.object)

    def _lws(self, change: str, lws: Object) -> None:
        name = lws.metadata.name
        if change == "ADDED":
            self._sets[name] = Groups(lws)
            self._send("POST", _path(lws, STATEFULSETS), _leaders(self._sets[name]))
            return
        groups = self._sets[name]
        before, groups.lws = groups.lws, lws
        if change == "MODIFIED" and before.metadata.generation != lws.metadata.generation:
            groups.ready.discard(name)
            groups.is_reported = False
            if before.spec.leader_worker_template != lws.spec.leader_worker_template:
                groups.revision = lws.metadata.generation
                groups.ready.clear()
                groups.old = sorted(groups.leaders)
            spec = _leaders(groups)["spec"]
            body = {"spec": {field: spec[field] for field in ("replicas", "template")}}
            self._send("PATCH", f"{_path(lws, STATEFULSETS)}/{name}", body)
            for _ in groups.old[: lws.spec.replicas // 4]:
                self._replace(groups, groups.old.pop())

    def _replace(self, groups: Groups, leader: str) -> None:
        if groups.leaders.pop(leader, None):
            self._send("DELETE", f"{_path(groups.lws, PODS)}/{leader}?propagationPolicy=Foreground")

    def _pod(self, change: str, pod: Object) -> None:
        groups, leader = self._sets[pod.metadata.labels[NAME]], pod.metadata.labels.get(LEADER, pod.metadata.name)
        if leader != pod.metadata.name:
            if change == "DELETED" and groups.leaders.get(leader) == pod.metadata.labels[LEADER_UID]:
                self._replace(groups, leader)
        elif change == "ADDED":
            groups.leaders[leader] = pod.metadata.uid
            if leader not in groups.workers:
                self._create_workers(groups, leader)
        elif (change == "DELETED" or pod.metadata.deletion_timestamp) and groups.leaders.get(
            leader
        ) == pod.metadata.uid:
            del groups.leaders[leader]

    def _statefulset(self, change: str, statefulset: Object) -> None:
        groups, name = self._sets[statefulset.metadata.labels[NAME]], statefulset.metadata.name
        if change == "DELETED":
            groups.ready.discard(name)
            groups.workers.discard(name)
            if name in groups.leaders:
                self._create_workers(groups, name)
        elif name == groups.lws.metadata.name:
            self._note(groups, name, is_ready=_is_ready(statefulset, groups.lws.spec.replicas))
        else:
            groups.workers.add(name)
            if name in groups.leaders and statefulset.metadata.labels[REVISION] == str(groups.revision):
                self._note(groups, name, is_ready=_is_ready(statefulset, statefulset.spec.replicas))
        is_whole = len(groups.ready) == groups.lws.spec.replicas + 1
        if is_whole and not groups.is_reported:
            self._report(groups.lws)
        groups.is_reported = is_whole

    def _note(self, groups: Groups, name: str, *, is_ready: bool) -> None:
        if is_ready and name not in groups.ready and name in groups.workers and groups.old:
            self._replace(groups, groups.old.pop())
        (groups.ready.add if is_ready else groups.ready.discard)(name)

    def _report(self, lws: Object) -> None:
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), lws.spec.replicas)
        body = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": lws.metadata.name, "resourceVersion": lws.metadata.resource_version},
            "status": counts | {"observedGeneration": lws.metadata.generation},
        }
        self._send("PUT", f"{_path(lws, LEADERWORKERSETS)}/{lws.metadata.name}/status", body)

    def _create_workers(self, groups: Groups, leader: str) -> None:
        owner = _owner("v1", "Pod", leader, groups.leaders[leader])
        template = groups.lws.spec.leader_worker_template
        assert template
        labels = {NAME: groups.lws.metadata.name, WORKER_INDEX: "1", LEADER: leader}
        more = {REVISION: str(groups.revision), LEADER_UID: groups.leaders[leader]}
        body = _statefulset(groups.lws, owner, labels, more, template.size - 1)
        self._send("POST", _path(groups.lws, STATEFULSETS), body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        self._group.create_task(self._sent(method, path, body))

    async def _sent(self, method: str, path: str, body: dict[str, Any] | None) -> None:
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        data = body and msgspec.json.encode(body)
        async with self._session.request(method, path, data=data, headers=headers) as response:
            await response.read()
            if not (response.status == HTTPStatus.NOT_FOUND and method == "DELETE"):
                response.raise_for_status()


def _is_ready(statefulset: Object, replicas: int) -> bool:
    status = statefulset.status
    is_seen = status.observed_generation == statefulset.metadata.generation and statefulset.spec.replicas == replicas
    return is_seen and status.ready_replicas == status.updated_replicas == replicas


def _path(lws: Object, everywhere: str) -> str:
    """Return the path of a kind in the namespace of the set, derived from its path for all namespaces."""
    version, _, plural = everywhere.rpartition("/")
    return f"{version}/namespaces/{lws.metadata.namespace}/{plural}"


def _owner(version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": True}


def _leaders(groups: Groups) -> dict[str, Any]:
    lws = groups.lws
    owner = _owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", lws.metadata.name, lws.metadata.uid)
    labels = {NAME: lws.metadata.name, WORKER_INDEX: "0"}
    return _statefulset(lws, owner, labels, {REVISION: str(groups.revision)}, lws.spec.replicas)


def _statefulset(
    lws: Object, owner: dict[str, Any], labels: dict[str, str], more: dict[str, str], replicas: int
) -> dict[str, Any]:
    assert lws.spec.leader_worker_template
    template = msgspec.json.decode(lws.spec.leader_worker_template.worker_template)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": owner["name"], "labels": labels | more, "ownerReferences": [owner]},
        "spec": {
            "replicas": replicas,
            "serviceName": lws.metadata.name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "ordinals": {"start": int(labels[WORKER_INDEX])},
            "selector": {"matchLabels": labels},
            "template": template | {"metadata": {"labels": labels | more}},
        },
    }


async def allow(request: web.Request) -> web.Response:
    """Admit all requests."""
    uid = REVIEWS.decode(await request.read()).request.uid
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": True}}
    return web.Response(body=msgspec.json.encode(review), content_type="application/json")


def session(kubeconfig: Path) -> aiohttp.ClientSession:
    """Return the session for a JSON kubeconfig. Its token is not reread."""
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
    """Run until the process exits. Any error stops the manager."""
    tlsbuffers.reduce_buffer_size()
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
