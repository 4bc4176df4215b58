"""Tests random sequences of writes by two managers to a few objects. Both servers must return the same results."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named, statefulset
from tests.conformance.transcript import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, STATEFULSETS, Resource

EXAMPLES = 25
WRITES = 8

values = st.sampled_from(["1", "2", "<&>", ""])
maps = st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=3)
managers = st.sampled_from(["first", "second"])
booleans = st.booleans()

containers = st.lists(
    st.builds(
        lambda name, image, env: container(
            name=name, image=image, env=[{"name": k, "value": v} for k, v in env.items()]
        ),
        st.sampled_from(["main", "side"]),
        st.sampled_from(["app:1", "app:2"]),
        maps,
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda one: str(one["name"]),
)
metadata = st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps})
operations = st.sampled_from(
    ["create", "apply", "merge", "strategic", "json", "update", "status", "delete", "finalizers"]
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Resource, JSONObject]:
    """Return a kind and the content of an object of that kind."""
    resource = draw(st.sampled_from([CONFIG_MAPS, STATEFULSETS, LEADERWORKERSETS]))
    content: JSONObject
    if resource is CONFIG_MAPS:
        content = {"data": draw(maps)}
    elif resource is STATEFULSETS:
        content = {
            "spec": {"replicas": draw(st.integers(0, 3)), "template": {"spec": {"containers": draw(containers)}}}
        }
    else:
        groups = {"size": draw(st.integers(0, 3)), "workerTemplate": {"spec": {"containers": draw(containers)}}}
        content = {"spec": {"replicas": draw(st.integers(-1, 3)), "leaderWorkerTemplate": groups}}
    return resource, {"metadata": {"name": "one"} | draw(metadata)} | content


steps = st.tuples(operations, changes(), managers, booleans)


async def perform(
    session: Session, operation: str, change: tuple[Resource, JSONObject], manager: str, *, force: bool
) -> None:
    """Send one write request, and read the resulting object."""
    resource, content = change
    match operation:
        case "create":
            whole = {CONFIG_MAPS: named("one"), STATEFULSETS: statefulset("one"), LEADERWORKERSETS: lws("one")}[
                resource
            ]
            await session.create(
                resource, whole | ({"data": content["data"]} if "data" in content else {}), fieldManager=manager
            )
        case "apply":
            options: dict[str, Any] = {"force": True} if force else {}
            await session.apply(resource, content, manager=manager, **options)
        case "merge" | "strategic":
            media = MERGE_PATCH if operation == "merge" else STRATEGIC_PATCH
            await session.patch(resource, "one", content, media=media, fieldManager=manager)
        case "json":
            patch = [
                {"op": "add", "path": f"/{name}", "value": value}
                for name, value in content.items()
                if name != "metadata"
            ]
            await session.patch(resource, "one", patch, media=JSON_PATCH, fieldManager=manager)
        case "update":
            live = await session.get(resource, "one")
            if live.get("metadata", {}).get("name"):
                own = {**live["metadata"], **content["metadata"]}
                changed = {**live, "metadata": own} | ({"data": content["data"]} if "data" in content else {})
                await session.update(resource, changed, fieldManager=manager)
        case "status" if resource is not CONFIG_MAPS:
            status = {"status": {"replicas": 1 + force}}
            await session.patch(resource, "one", status, subresource="status", fieldManager=manager)
        case "delete":
            await session.delete(resource, "one", {"propagationPolicy": "Background"})
        case "finalizers":
            finalizers = ["example.com/hold"] if force else None
            await session.patch(resource, "one", {"metadata": {"finalizers": finalizers}}, fieldManager=manager)
    await session.get(resource, "one")


def test_random_writes_have_the_same_result(same: CheckSame) -> None:
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.lists(steps, min_size=2, max_size=WRITES))
    def check(sequence: list[tuple[str, tuple[Resource, JSONObject], str, bool]]) -> None:
        async def play(session: Session) -> None:
            for operation, change, manager, force in sequence:
                await perform(session, operation, change, manager, force=force)

        same(play)

    check()
