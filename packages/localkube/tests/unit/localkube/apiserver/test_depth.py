"""Tests that each verb accepts objects of the maximum depth, and rejects deeper objects with status 400."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, CRDS, WIDGETS, Api, config_map, definition, run, widget

from kuberuntime.manifests.nesting import MAX_DEPTH

OPEN = {"properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
YAML = {"content-type": "application/yaml"}
TOO_DEEP = f"exceeded max depth: more than {MAX_DEPTH} nested objects and lists"
REFUSED = (400, "BadRequest", f"couldn't get version/kind; json parse error: {TOO_DEEP}")
MARGIN = 200
"""The number of stack frames that must remain below the recursion limit of Python."""


@pytest.fixture
def less_stack() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit - MARGIN)
    yield
    sys.setrecursionlimit(limit)


def nested(depth: int, end: Any = "end") -> Any:
    """Return objects and lists that are nested alternately."""
    for level in range(depth):
        end = [end] if level % 4 == 3 else {"a": end}
    return end


def deep_widget(depth: int, name: str = "a") -> dict[str, Any]:
    """Build a widget of this depth."""
    return widget(name, data=nested(depth - 2))


def deep_definition(depth: int) -> dict[str, Any]:
    """Build a CRD with a schema of the maximum object depth. Each property uses two levels."""
    schema: dict[str, Any] = {"type": "string", "default": "x"}
    for _ in range((depth - 6) // 2 - 3):
        schema = {"type": "object", "properties": {"a": schema}}
    return definition(properties={"spec": {"type": "object", "properties": {"data": schema}}})


async def test_deepest_object_is_served_by_every_verb(api: Api, less_stack: None) -> None:
    await api.create(CRDS, definition(**OPEN))
    made = deep_widget(MAX_DEPTH)
    assert (await api.create(WIDGETS, made)).code == 201
    metadata = {"name": "a", "resourceVersion": (await api.get(f"{WIDGETS}/a"))["metadata"]["resourceVersion"]}
    changed = {**made, "metadata": metadata, "spec": {"data": nested(MAX_DEPTH - 2, "other")}}
    assert (await api.update(f"{WIDGETS}/a", changed, fieldManager="other")).code == 200
    assert (await api.patch(f"{WIDGETS}/a", made)).code == 200
    replace = [{"op": "replace", "path": "/spec/data", "value": nested(MAX_DEPTH - 2, 3)}]
    assert (await api.patch(f"{WIDGETS}/a", replace, "json-patch+json")).code == 200
    assert (await api.apply(f"{WIDGETS}/a", made, force="true")).code == 200
    assert (await api.apply(f"{WIDGETS}/a", deep_widget(3), force="true")).code == 200
    assert (await api.apply(f"{WIDGETS}/b", deep_widget(MAX_DEPTH, "b"), fieldValidation="Strict")).code == 201
    written = yaml.safe_dump(deep_widget(MAX_DEPTH, "c"), default_flow_style=True).encode()
    assert (await api.send("POST", WIDGETS, written, headers=YAML)).code == 201
    for form in ("application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        for path in (WIDGETS, f"{WIDGETS}/a"):
            assert (await api.send("GET", path, headers={"accept": form})).code == 200
    assert (await api.delete(f"{WIDGETS}/a")).code == 200
    assert (await api.delete(WIDGETS)).code == 200


@pytest.mark.parametrize("depth", [MAX_DEPTH - 6, MAX_DEPTH - 5, MAX_DEPTH - 4, MAX_DEPTH])
def test_deepest_object_can_be_written_with_managed_fields(depth: int, less_stack: None) -> None:
    data: Any = {}
    for _ in range(depth - 3):
        data = {"a": data}

    async def scenario(api: Api) -> None:
        await api.create(CRDS, definition(**OPEN))
        made = (await api.create(WIDGETS, widget(data=data))).body
        assert (await api.update(f"{WIDGETS}/a", made)).body == made
        relabelled = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
        assert (await api.patch(f"{WIDGETS}/a", relabelled, "json-patch+json")).code == 200
        assert (await api.apply(f"{WIDGETS}/a", widget(data=data), force="true")).code == 200
        assert (await api.update(f"{WIDGETS}/a", (await api.get(f"{WIDGETS}/a")).body)).code == 200

    run(scenario)


async def test_deepest_definition_is_served(api: Api, less_stack: None) -> None:
    made = deep_definition(MAX_DEPTH)
    assert (await api.create(CRDS, made)).code == 201
    assert (await api.apply(f"{CRDS}/widgets.example.org", made, force="true")).code == 200
    assert (await api.create(WIDGETS, widget(data={"a": {"a": {}}}))).code == 201
    assert (await api.apply(f"{WIDGETS}/a", {**widget(), "spec": {"data": {"a": {}}}}, force="true")).code == 200
    assert (await api.get("/openapi/v3/apis/example.org/v1")).code == 200


async def test_annotations_of_kubectl_may_be_as_deep(api: Api, less_stack: None) -> None:
    await api.create(CRDS, definition(**OPEN))
    for depth in (MAX_DEPTH, MAX_DEPTH * 20, 100_000):
        deep = "[" * depth + "]" * depth
        last = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"data":' + deep + "}}"}
        obj = widget(f"a{depth}", size=1) | {"metadata": {"name": f"a{depth}", "annotations": last}}
        assert (await api.create(WIDGETS, obj, fieldManager="kubectl-client-side-apply")).code == 201
        applied = await api.apply(f"{WIDGETS}/a{depth}", widget(f"a{depth}", size=2), "kubectl", force="true")
        assert applied.code == 200


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 9_000, 200_000])
@pytest.mark.parametrize("media", ["json", "merge-patch+json", "json-patch+json", "apply-patch+yaml"])
def test_deeper_object_is_rejected(media: str, depth: int) -> None:
    body = b'{"metadata":{"name":"settings"},"data":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    async def scenario(api: Api) -> None:
        await api.create(CONFIG_MAPS, config_map(k="v"))
        if media == "json":
            assert (await api.create(CONFIG_MAPS, body)).refusal == REFUSED
            assert (await api.update(f"{CONFIG_MAPS}/settings", body)).refusal == REFUSED
            assert (await api.delete(f"{CONFIG_MAPS}/settings", body)).refusal == REFUSED
        else:
            assert (await api.patch(f"{CONFIG_MAPS}/settings", body, media, fieldManager="a")).refusal == REFUSED

    run(scenario)


async def test_json_patch_cannot_exceed_the_depth(api: Api) -> None:
    await api.create(CRDS, definition(**OPEN))
    await api.create(WIDGETS, deep_widget(MAX_DEPTH))
    deeper = [{"op": "copy", "from": "/spec", "path": "/spec/data/a"}]
    assert (await api.patch(f"{WIDGETS}/a", deeper, "json-patch+json")).refusal == (
        400,
        "BadRequest",
        f"json: {TOO_DEEP}",
    )


async def test_json_patch_cannot_exceed_the_depth_by_many_operations(api: Api) -> None:
    await api.create(CRDS, definition(**OPEN))
    await api.create(WIDGETS, widget(data={}))
    part = nested(40, {})
    place = "/0/a/a/a" * 10
    adds = [{"op": "add", "path": "/spec/data" + place * times, "value": part} for times in range(100)]
    answer = await api.patch(f"{WIDGETS}/a", adds, "json-patch+json")
    assert answer.refusal == (400, "BadRequest", f"json: {TOO_DEEP}")


async def test_json_patch_copies_are_bounded_in_size(api: Api) -> None:
    await api.create(CRDS, definition(**OPEN))
    await api.create(WIDGETS, widget(data={"text": "x" * 1000}))
    doubled = [{"op": "copy", "from": "/spec/data", "path": f"/spec/data/{number}"} for number in range(60)]
    answer = await api.patch(f"{WIDGETS}/a", doubled, "json-patch+json")
    assert answer.code == 422
    assert "Unable to complete the copy, the accumulated size increase of copy is " in answer["message"]


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "line 7: alias *a5: aliases must not repeat more than 3145728 characters and nodes"),
        ("[" * 50_000, f"line 1: nested more than {MAX_DEPTH} levels deep"),
        ("a: &a [*a]", "line 1: alias *a is an alias inside its own anchor"),
        ("? [a]\n: b", "line 1: a list cannot be a key, because JSON keys must be strings"),
    ],
    ids=["billion laughs", "deep", "recursive", "key"],
)
@pytest.mark.parametrize("media", ["application/yaml", "application/apply-patch+yaml"])
async def test_yaml_bomb_is_rejected(api: Api, media: str, text: str, problem: str) -> None:
    method, path = ("POST", CONFIG_MAPS) if media == "application/yaml" else ("PATCH", f"{CONFIG_MAPS}/settings")
    answer = await api.send(method, path, text.encode(), headers={"content-type": media}, fieldManager="a")
    assert answer.refusal == (400, "BadRequest", f"error converting YAML to JSON: yaml: {problem}")


async def test_yaml_keys_become_json_strings(api: Api) -> None:
    text = b"metadata: {name: settings}\ndata: {1: a, on: b, 1.5: c, 1e3: d}\n"
    answer = await api.send("POST", CONFIG_MAPS, text, headers=YAML)
    assert answer["data"] == {"1": "a", "true": "b", "1.5": "c", "1000": "d"}
