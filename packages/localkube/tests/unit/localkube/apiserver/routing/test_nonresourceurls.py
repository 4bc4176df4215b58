"""Tests discovery, OpenAPI, health checks, the version, and access reviews."""

import pytest
from tests.unit.localkube.apiserver.harness import CRDS, Api, definition

from localkube.apiserver.routing import openapi

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_api_resources_have_verbs_and_subresources(api: Api) -> None:
    found = {one["name"]: one for one in (await api.get("/api/v1"))["resources"]}
    assert found["pods"]["shortNames"] == ["po"]
    assert found["pods"]["verbs"] == [
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    ]  # fmt: skip
    assert found["pods/log"]["verbs"] == ["get"]
    assert found["pods/eviction"]["group"] == "policy"
    assert found["namespaces/finalize"]["verbs"] == ["update"]
    assert not found["nodes"]["namespaced"]
    apps = {one["name"] for one in (await api.get("/apis/apps/v1"))["resources"]}
    assert {"statefulsets", "statefulsets/status", "statefulsets/scale"} <= apps


async def test_groups_follow_their_definitions(api: Api) -> None:
    async def groups() -> list[str]:
        return [group["name"] for group in (await api.get("/apis"))["groups"]]

    assert "example.org" not in await groups()
    await api.create(CRDS, definition())
    assert "example.org" in await groups()
    group = await api.get("/apis/example.org")
    assert group["preferredVersion"] == {"groupVersion": "example.org/v1", "version": "v1"}
    assert (await api.get("/apis/nowhere.org")).code == 404
    assert (await api.get("/api"))["versions"] == ["v1"]


async def test_aggregated_discovery_lists_all_resources(api: Api) -> None:
    core = await api.send("GET", "/api", headers={"accept": AGGREGATED})
    assert core["kind"] == "APIGroupDiscoveryList"
    pods = next(one for one in core["items"][0]["versions"][0]["resources"] if one["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert {"log", "exec"} <= {one["subresource"] for one in pods["subresources"]}
    groups = await api.send("GET", "/apis", headers={"accept": AGGREGATED})
    assert "apps" in [item["metadata"]["name"] for item in groups["items"]]
    assert groups.headers["content-type"].endswith("as=APIGroupDiscoveryList")


async def test_openapi_announces_field_validation(api: Api) -> None:
    index = (await api.get("/openapi/v3"))["paths"]
    document = await api.get(index["apis/apps/v1"]["serverRelativeURL"])
    path = "/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
    patch = document["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "StatefulSet"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    schema = document["components"]["schemas"]["io.k8s.api.apps.v1.StatefulSet"]
    reference = schema["properties"]["spec"]["allOf"][0]["$ref"]
    spec = document["components"]["schemas"][reference.removeprefix("#/components/schemas/")]
    assert spec["properties"]["replicas"] == {"type": "integer"}
    assert (await api.get("/openapi/v3/apis/nowhere/v1")).code == 404


async def test_openapi_v2_has_no_definitions_in_both_forms(api: Api) -> None:
    document = await api.get("/openapi/v2")
    assert (document["swagger"], document["definitions"]) == ("2.0", {})
    message = await api.send("GET", "/openapi/v2", headers={"accept": openapi.PROTOBUF_ACCEPTED})
    assert message.headers["content-type"] == openapi.PROTOBUF_TYPE
    title, version = (word.encode() for word in document["info"].values())
    info = b"\n%c%s\x12%c%s" % (len(title), title, len(version), version)
    assert message.body == b"\n\x032.0\x12%c%s" % (len(info), info)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health_checks_return_ok(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.code, answer.body) == (200, b"ok")


async def test_version_equals_the_emulated_version(api: Api) -> None:
    version = await api.get("/version")
    assert (version["major"], version["minor"]) == ("1", "36")
    assert (await api.send("POST", "/version")).code == 405


async def test_reviews_name_the_user_and_allow_everything(api: Api) -> None:
    own = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert own["status"]["userInfo"]["username"] == "tester"
    spec = {"resourceAttributes": {"verb": "delete", "resource": "pods"}}
    access = await api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})
    assert (access.code, access["spec"], access["status"]["allowed"]) == (201, spec, True)
    rules = await api.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "a"}})
    assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
    assert (await api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).code == 405
    protobuf = {"content-type": "application/vnd.kubernetes.protobuf"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    binary = await api.send("POST", path, b"k8s\x00...", headers=protobuf)
    assert binary["status"]["allowed"] is True
