"""POST to a collection."""

import pytest
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, NAMESPACES, PODS, Api, config_map, pod, run


async def test_new_object_receives_its_identity_from_the_server(api: Api) -> None:
    sent = config_map(a="1")
    sent["metadata"] |= {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7}
    answer = await api.create(CONFIG_MAPS, sent)
    metadata = answer["metadata"]
    assert answer.code == 201
    assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert metadata["namespace"] == "default"
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdecimal()
    assert metadata["generation"] == 7, "kinds whose generation nobody counts keep what was sent"
    assert (await api.get(f"{CONFIG_MAPS}/settings")).body == answer.body


async def test_kind_may_be_omitted_from_the_body(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (answer.code, answer["kind"], answer["apiVersion"]) == (201, "ConfigMap", "v1")


async def test_name_is_generated_from_its_prefix(api: Api) -> None:
    sent = {"metadata": {"generateName": "x" * 70}}
    names = {(await api.create(CONFIG_MAPS, sent))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("x" * 58) and len(name) == 63 for name in names)


async def test_existing_object_is_not_created_again(api: Api) -> None:
    await api.create(PODS, pod())
    answer = await api.create(PODS, pod())
    assert answer.refusal == (409, "AlreadyExists", 'pods "web" already exists')
    assert answer["details"] == {"name": "web", "kind": "pods"}


async def test_resource_version_must_not_be_set(api: Api) -> None:
    sent = config_map()
    sent["metadata"]["resourceVersion"] = "5"
    answer = await api.create(CONFIG_MAPS, sent)
    assert answer.refusal == (500, "", "resourceVersion should not be set on objects to be created")


async def test_missing_namespace_is_not_found(api: Api) -> None:
    answer = await api.create(f"{NAMESPACES}/nowhere/pods", pod())
    assert answer.refusal == (404, "NotFound", 'namespaces "nowhere" not found')


async def test_terminating_namespace_refuses_new_objects(api: Api) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "old"}})
    await api.delete(f"{NAMESPACES}/old")
    answer = await api.create(f"{NAMESPACES}/old/configmaps", config_map("a"))
    text = 'configmaps "a" is forbidden: unable to create new content in namespace old because it is being terminated'
    assert answer.refusal == (403, "Forbidden", text)
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"metadata": {"name": "a", "namespace": "other"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ({"apiVersion": "v2", "metadata": {"name": "a"}}, "the API version in the data (v2) does not match"),
        ({"kind": "Secret", "apiVersion": "v1"}, 'Secret in version "v1" cannot be handled as a ConfigMap'),
        (b"{", "couldn't get version/kind; json parse error"),
        (b"[]", "couldn't get version/kind; json parse error: the body is not an object"),
    ],
    ids=["namespace", "version", "kind", "syntax", "list"],
)
async def test_body_for_another_url_is_refused(api: Api, body: object, text: str) -> None:
    code, reason, message = (await api.create(CONFIG_MAPS, body)).refusal
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith(text)


async def test_object_without_a_name_is_invalid(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, {"metadata": {}})
    text = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert answer.refusal == (422, "Invalid", text)


async def test_dry_run_stores_nothing(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, config_map(), dryRun="All")
    assert answer.code == 201
    assert answer["metadata"]["uid"]
    assert (await api.get(f"{CONFIG_MAPS}/settings")).code == 404
    await api.create(CONFIG_MAPS, config_map())
    assert (await api.create(CONFIG_MAPS, config_map(), dryRun="All")).code == 409


async def test_unknown_fields_cause_a_warning_by_default(api: Api) -> None:
    sent = pod("a") | {"extra": 1}
    warned = await api.create(PODS, sent)
    assert warned.headers["warning"] == '299 - "unknown field \\"extra\\""'
    assert "extra" not in warned.body
    ignored = await api.create(PODS, sent | {"metadata": {"name": "b"}}, fieldValidation="Ignore")
    assert "warning" not in ignored.headers
    strict = await api.create(PODS, sent | {"metadata": {"name": "c"}}, fieldValidation="Strict")
    text = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "extra"'
    assert strict.refusal == (400, "BadRequest", text)


async def test_options_are_validated(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, config_map(), dryRun="Some")
    text = 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    assert answer.refusal == (422, "Invalid", text)


async def test_yaml_is_accepted_and_other_formats_are_refused(api: Api) -> None:
    body = b"metadata: {name: a}\ndata: {day: 2026-01-01, on: 'x'}\n"
    answer = await api.send("POST", CONFIG_MAPS, body, headers={"content-type": "application/yaml"})
    assert answer["data"] == {"day": "2026-01-01", "true": "x"}
    form = await api.send("POST", CONFIG_MAPS, b"a=1", headers={"content-type": "application/x-www-form-urlencoded"})
    assert form.refusal[:2] == (415, "UnsupportedMediaType")


def test_pods_beyond_the_limit_are_refused_like_a_quota() -> None:
    async def scenario(api: Api) -> None:
        codes = [answer.code for answer in [await api.create(PODS, pod(name)) for name in ("a", "b", "c")]]
        answer = await api.create(PODS, pod("c"))
        assert codes == [201, 201, 403]
        assert answer["reason"] == "Forbidden"
        assert answer["message"] == (
            'pods "c" is forbidden: exceeded quota: max-pods, requested: count/pods=1, used: count/pods=2, '
            "limited: count/pods=2"
        )
        assert (await api.create(CONFIG_MAPS, config_map(a="1"))).code == 201
        await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
        assert (await api.create(PODS, pod("c"))).code == 201

    run(scenario, max_pods=2)
