"""Tests scaling and applying in turn, and the reasons for missing ranks, on both clusters."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario

from kuberuntime import timeouts
from kuberuntime.client.channels import Channels
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.cli import targets
from lwsctl.cli.applying import applier
from lwsctl.cli.applying.applier import Applier
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.commands import logs, wait
from lwsctl.cli.commands.inspect import describe, nodes
from lwsctl.cli.commands.rollout import diff, plan
from lwsctl.cli.commands.scale import ScaleRequest, scale, scale_role
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.logsrequest import LogsRequest
from lwsctl.cli.reading import manifests
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.sets import shown
from lwsctl.cli.views import formats
from lwsctl.cli.watchwarnings import following
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import View
from lwsctl.model.nodestate import nodes_of
from lwsctl.observation import eventlog, lists
from lwsctl.observation.conditionwatch import DisaggregatedInformers, SetInformers
from lwsctl.observation.lists import Lists
from lwsctl.observation.podlogs import PodLogOptions
from lwsctl.views import unmetconditions
from lwsctl.views.selection import Selection

LIMIT = 60.0


def session_of(space: LiveScenario, client: Client | None = None) -> Session:
    """Return the session of a command in the test's namespace. The session does not open channels."""

    def channels(path: str, query: Query, protocol: str) -> AbstractAsyncContextManager[Channels]:
        raise AssertionError((path, query, protocol))

    return Session(client or space.client, space.namespace, channels)


async def apply(space: LiveScenario, obj: JSONObject) -> list[str]:
    """Apply a manifest in the same way as `lws apply`."""
    return await apply_documents(space, [Document("lws.yaml", 1, obj)])


async def apply_documents(space: LiveScenario, documents: list[Document]) -> list[str]:
    """Check and apply documents in the same way as `lws apply`."""
    one = Applier(session_of(space))
    await one.check(documents)
    return await one.apply(documents)


async def test_scaled_set_can_be_applied_again(space: LiveScenario) -> None:
    assert await apply(space, lws(replicas=1, size=1)) == ["leaderworkerset/web created"]
    assert (await scale(session_of(space), "web", ScaleRequest(2))).before == 1
    told = "leaderworkerset/web configured (taken over from lws scale: spec.replicas 2 -> 1)"
    assert await apply(space, lws(replicas=1, size=1)) == [told]
    assert await apply(space, lws(replicas=1, size=1)) == ["leaderworkerset/web unchanged"]
    assert meta.spec(await space.get(LEADERWORKERSETS, "web"))["replicas"] == 1


EMPTY_BLOCKS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: web
  annotations:
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      metadata:
        creationTimestamp: null
      spec:
        initContainers:
        containers:
        - name: serve
          image: org/server:1
          env:
          volumeMounts:
          - name: shm
            mountPath: /dev/shm
            subPath:
        volumes:
        - name: shm
          emptyDir:
            medium:
"""
"""The output of a chart with empty values, which `kubectl apply` accepts."""


async def test_empty_blocks_of_a_chart_are_accepted(space: LiveScenario) -> None:
    session, documents = session_of(space), manifests.parse(EMPTY_BLOCKS, "chart.yaml")
    (tried,) = await applier.dry_run(session, documents, force=False)
    assert tried.before is None
    assert list(diff.differences([tried]))
    assert await apply_documents(space, documents) == ["leaderworkerset/web created"]
    (again,) = await applier.dry_run(session, documents, force=False)
    assert list(diff.differences([again])) == []
    assert (
        plan.forecast_change(again.document, await rollouttargets.read_view(session, again.after), again.after).changes
        == ()
    )


@pytest.mark.parametrize(
    ("template", "line", "field"),
    [
        ("workerTemplate: {spec: {containers: []}}", 8, "workerTemplate.spec.containers"),
        ("workerTemplate: {spec: {containers: null}}", 8, "workerTemplate.spec.containers"),
        ("workerTemplate: {spec: null}", 8, "workerTemplate.spec.containers"),
        ("workerTemplate: null", 8, "workerTemplate"),
        ("size: 1", 6, "workerTemplate"),
    ],
)
async def test_empty_block_is_rejected_with_its_own_path(
    space: LiveScenario, template: str, line: int, field: str
) -> None:
    head = (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: web}\nspec:\n  replicas: 1\n"
    )
    text = f"{head}  leaderWorkerTemplate:\n    restartPolicy: None\n    {template}\n"
    with pytest.raises(CommandError) as caught:
        await apply_documents(space, manifests.parse(text, "web.yaml"))
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"web.yaml:{line}: leaderworkerset/web: ")
    assert re.search(rf"spec\.leaderWorkerTemplate\.{re.escape(field)}: Required value", first), first


async def test_applying_replicas_of_a_different_scaler_is_a_conflict(space: LiveScenario) -> None:
    await apply(space, lws(replicas=1, size=1))
    await space.client.patch(
        LEADERWORKERSETS, space.key("web"), {"spec": {"replicas": 2}}, kind="merge", subresource="scale", manager="hpa"
    )
    with pytest.raises(CommandError, match=r'conflict with "hpa".*--force-conflicts'):
        await apply(space, lws(replicas=1, size=1))
    assert meta.spec(await space.get(LEADERWORKERSETS, "web"))["replicas"] == 2


async def test_node_table_shows_free_resources_and_their_users(space: LiveScenario) -> None:
    await apply(space, lws(replicas=1, size=2))
    await space.settled()
    session = session_of(space)
    objects, pods = await nodes.list_nodes(session, (), ""), await nodes.list_pods(session)
    assert pods is not None
    listed = nodes_of(objects, pods)
    table = nodes.node_table(listed, show_labels=False)
    assert table[0].startswith("NODE ")
    assert {line.split()[1] for line in table[1:]} == {"Ready"}
    told = [line for node in listed for line in nodes.describe_node(node)]
    for name in ("web-0", "web-0-1"):
        assert sum(line.startswith(f"    {space.namespace}/{name}: ") for line in told) == 1
    (named,) = await nodes.list_nodes(session, (listed[0].name,), "")
    assert formats.render_objects("name", [named], is_one=True) == f"node/{listed[0].name}\n"


async def explained(space: LiveScenario, place: str, words: str) -> str:
    """Wait until a followed view shows a reason with these strings for a rank. Return the view."""
    informers = SetInformers(space.client, ObjectKey(space.namespace, "web"))

    def reason() -> str | None:
        view = informers.view()
        return next((why for why in whys(view, place) if words in why), None) if view else None

    try:
        async with timeouts.within(LIMIT), following(*informers.all) as objects:
            return await objects.wait_for(reason)
    except TimeoutError:
        raise AssertionError(f"no {words!r} at {place}, but {informers.view()}") from None


def whys(view: View, place: str) -> list[str]:
    """Return the reason why a rank is not ready."""
    return [rank.why for group in view.groups for rank in group.ranks if rank.place == place]


async def test_rejected_statefulset_explains_the_missing_rank(space: LiveScenario) -> None:
    template = pod_template()
    template["spec"]["containers"][0]["ports"] = [{"containerPort": 99999}]
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": template}))
    assert "must be between 1 and 65535" in await explained(space, "0/0", "Invalid value: 99999")


async def test_rejected_pod_explains_the_missing_rank(space: LiveScenario) -> None:
    workers = pod_template(priorityClassName="no-such-priority")
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": workers, "leaderTemplate": pod_template()}))
    why = await explained(space, "0/1", "no-such-priority")
    assert why.lower().startswith("create pod web-0-1 in statefulset web-0 failed error: ")  # 1.34 writes "create"
    session = session_of(space)
    view = await targets.read_view(session, await targets.find(session, "web"))
    (shown,) = await lists.with_evidence(Lists(space.client), [view], space.namespace)
    assert whys(shown, "0/1") == [why]
    assert "no-such-priority" not in whys(shown, "0/0")[0]


async def test_recreated_group_shows_the_failed_pod(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=2))
    await space.fail("web-0-1")
    informers = SetInformers(space.client, ObjectKey(space.namespace, "web"))

    def recreated() -> str | None:
        view = informers.view()
        told = view.groups[0].recreations if view else None
        return told.failed_pod if told and told.count == 1 and not told.is_waiting else None

    async with timeouts.within(LIMIT), following(*informers.all) as objects:
        assert await objects.wait_for(recreated) == "web-0-1"


async def test_disaggregated_set_is_listed_with_its_parts(space: LiveScenario) -> None:
    roles = [role("prefill", 2, size=2), role("decode", 1)]
    obj = disaggregatedset_object(roles) | {"metadata": {"name": "split"}}
    assert await apply(space, obj) == ["disaggregatedset/split created"]
    session = session_of(space)
    assert await wait.find_resource(session, "split", "ready") == DISAGGREGATED_SETS
    assert await wait.find_resource(session, "split", "delete") == DISAGGREGATED_SETS
    first = await set_that_is(space, lambda shown: unmetconditions.missing_for_ready(shown) is None)
    assert [str(one) for one in first.roles] == ["prefill 2/2", "decode 1/1"]
    assert [one.name for one in first.parts] == [f"split-0-{revision_of(first)}-{one}" for one in ("decode", "prefill")]
    await apply(space, obj | {"spec": with_image(obj, "app:2")})
    rolling = await set_that_is(space, lambda shown: shown.is_updating)
    assert unmetconditions.missing_for_ready(rolling)
    second = await set_that_is(space, lambda shown: shown.is_ready)
    assert revision_of(second) != revision_of(first)

    found = await shown.find_objects(session, [Selection("split")])
    assert [meta.name(one) for one in found.sets] == ["split"]
    assert [meta.name(one) for one in found.leaderworkersets] == [one.name for one in second.parts]
    assert await targets.list_objects(session, space.namespace, "") == found
    assert found.names == ["split"]
    with pytest.raises(UsageError, match="split is a DisaggregatedSet; specify one of its LeaderWorkerSets"):
        await shown.find_objects(session, [Selection("split", 0)])


async def test_disaggregated_set_is_described_with_its_parts(space: LiveScenario) -> None:
    obj = disaggregatedset_object([role("prefill", 2, size=2), role("decode", 1)]) | {"metadata": {"name": "split"}}
    await apply(space, obj)
    shown = await set_that_is(space, lambda found: unmetconditions.missing_for_ready(found) is None)
    parts = {f"leaderworkerset/{part.name}" for part in shown.parts}
    lines = await describe.describe(session_of(space), Selection("split"))
    text = "\n".join(lines)
    assert "Groups:         3 desired, 3 ready, 3 updated" in lines
    assert re.search(r"^  prefill +2 +2 +2 +2 +Static +.* +app:1$", text, re.MULTILINE), text
    for part in shown.parts:
        assert re.search(rf"^  {part.name} +0 +{part.role} +{part.set_revision} ", text, re.MULTILINE), text
    await apply(space, obj | {"spec": with_image(obj, "app:2")})
    await space.eventually(lambda: regarded(space, shown), lambda found: {"disaggregatedset/split"} | parts <= found)
    with pytest.raises(UsageError, match="split is a DisaggregatedSet; specify one of its LeaderWorkerSets"):
        await describe.describe(session_of(space), Selection("split", 0))


async def regarded(space: LiveScenario, shown: SetView) -> set[str]:
    """Return the objects to which the events of a DisaggregatedSet refer."""
    return {one.object for one in await eventlog.read_disaggregatedset(space.client, shown)}


async def test_role_of_a_disaggregated_set_is_scaled_by_name(space: LiveScenario) -> None:
    roles = [role("prefill", 1), role("decode", 1) | {"scaling": {"mode": "External"}}]
    await apply(space, disaggregatedset_object(roles) | {"metadata": {"name": "split"}})
    session = session_of(space)
    await set_that_is(space, lambda shown: shown.is_ready)
    with pytest.raises(UsageError, match=r"specify a role with --role NAME \(prefill, decode\)"):
        await scale(session, "split", ScaleRequest(2))
    with pytest.raises(UsageError, match=r"split has no role 'encode' \(existing: prefill, decode\)"):
        await scale_role(session, "split", "encode", ScaleRequest(2))
    with pytest.raises(CommandError, match="split prefill has 1 group, not 7"):
        await scale_role(session, "split", "prefill", ScaleRequest(2, 7))
    assert (await scale_role(session, "split", "prefill", ScaleRequest(2))).before == 1
    assert (await scale_role(session, "split", "decode", ScaleRequest(3))).before == 1
    whole = await set_that_is(space, lambda shown: shown.is_ready and shown.ready == 5)
    with pytest.raises(CommandError, match="scale split --role decode"):
        await scale(session, whole.parts[0].name, ScaleRequest(1))
    with pytest.raises(UsageError, match="split is a DisaggregatedSet; specify one of its LeaderWorkerSets"):
        await targets.list_pods(session, Selection("split", 0))
    wanted = LogsRequest(
        selections=(Selection("split"),),
        groups=frozenset(),
        ranks=frozenset({0}),
        pattern=None,
        most=9,
        options=PodLogOptions(),
    )
    assert len(await logs.list_pods(session, wanted)) == 5


async def set_that_is(space: LiveScenario, wanted: Callable[[SetView], bool]) -> SetView:
    """Wait until the followed view of the LeaderWorkerSet satisfies the condition. Return the view."""
    informers = DisaggregatedInformers(space.client, ObjectKey(space.namespace, "split"))

    def as_wanted() -> SetView | None:
        shown = informers.view()
        return shown if shown is not None and wanted(shown) else None

    try:
        async with timeouts.within(LIMIT), following(*informers.all) as objects:
            return await objects.wait_for(as_wanted)
    except TimeoutError:
        raise AssertionError(f"the set is not as wanted: {informers.view()}") from None


def revision_of(shown: SetView) -> str:
    (revision,) = {one.set_revision for one in shown.parts}
    return revision
