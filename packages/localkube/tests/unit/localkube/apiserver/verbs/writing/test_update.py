"""PUT to an object and to its `/status`."""

from tests.unit.localkube.apiserver.harness import (
    CONFIG_MAPS,
    CRDS,
    PODS,
    STATEFULSETS,
    WIDGETS,
    Api,
    config_map,
    definition,
    pod,
    widget,
)

STALE = (
    'Operation cannot be fulfilled on configmaps "settings": the object has been modified;'
    " please apply your changes to the latest version and try again"
)


async def test_update_of_an_older_version_is_a_conflict(api: Api) -> None:
    first = (await api.create(CONFIG_MAPS, config_map(a="1"))).body
    second = await api.update(f"{CONFIG_MAPS}/settings", first | {"data": {"a": "2"}})
    assert (second.code, second["data"]) == (200, {"a": "2"})
    answer = await api.update(f"{CONFIG_MAPS}/settings", first | {"data": {"a": "3"}})
    assert answer.refusal == (409, "Conflict", STALE)


async def test_update_without_a_version_replaces_the_object(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map(a="1"))
    answer = await api.update(f"{CONFIG_MAPS}/settings", config_map(b="2"))
    assert (answer.code, answer["data"]) == (200, {"b": "2"})


async def test_custom_resource_update_requires_a_version(api: Api) -> None:
    await api.create(CRDS, definition())
    await api.create(WIDGETS, widget())
    answer = await api.update(f"{WIDGETS}/a", widget(size=2))
    text = (
        'widgets.example.org "a" is invalid: metadata.resourceVersion: Invalid value: 0:'
        " must be specified for an update"
    )
    assert answer.refusal == (422, "Invalid", text)


async def test_update_without_changes_writes_nothing(api: Api) -> None:
    first = (await api.create(PODS, pod())).body
    answer = await api.update(f"{PODS}/web", first)
    assert answer.body == first


async def test_server_managed_fields_cannot_be_updated(api: Api) -> None:
    first = (await api.create(CONFIG_MAPS, config_map())).body
    changed = first["metadata"] | {
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "generation": 9,
        "labels": {"a": "b"},
    }
    answer = await api.update(f"{CONFIG_MAPS}/settings", first | {"metadata": changed})
    assert answer["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    assert "generation" not in answer["metadata"]


async def test_update_with_another_uid_is_a_conflict(api: Api) -> None:
    first = (await api.create(CONFIG_MAPS, config_map())).body
    metadata = {"name": "settings", "uid": "other"}
    code, reason, message = (await api.update(f"{CONFIG_MAPS}/settings", {"metadata": metadata})).refusal
    assert (code, reason) == (409, "Conflict")
    assert f"UID in precondition: other, UID in object meta: {first['metadata']['uid']}" in message


async def test_name_must_equal_the_url(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    answer = await api.update(f"{CONFIG_MAPS}/settings", config_map("other"))
    text = "the name of the object (other) does not match the name on the URL (settings)"
    assert answer.refusal == (400, "BadRequest", text)


async def test_put_creates_only_some_kinds(api: Api) -> None:
    answer = await api.update(f"{CONFIG_MAPS}/settings", config_map())
    assert answer.refusal == (404, "NotFound", 'configmaps "settings" not found')
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    created = await api.update("/apis/coordination.k8s.io/v1/namespaces/default/leases/a", lease)
    assert created.code == 201


async def test_status_is_written_only_by_its_subresource(api: Api) -> None:
    first = (await api.create(PODS, pod())).body
    main = await api.update(f"{PODS}/web", first | {"status": {"phase": "Running"}})
    assert main["status"]["phase"] == "Pending"
    changed = main.body | {"status": {"phase": "Running"}, "spec": {"containers": []}}
    status = await api.update(f"{PODS}/web/status", changed)
    assert status["status"]["phase"] == "Running"
    assert status["spec"] == first["spec"]


async def test_generation_counts_spec_changes(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template, "replicas": 1}
    first = (await api.create(STATEFULSETS, {"metadata": {"name": "a"}, "spec": spec})).body
    scaled = (await api.update(f"{STATEFULSETS}/a", first | {"spec": first["spec"] | {"replicas": 2}})).body
    status = await api.update(f"{STATEFULSETS}/a/status", scaled | {"status": {"replicas": 1}})
    assert [one["metadata"]["generation"] for one in (first, scaled, status.body)] == [1, 2, 2]


async def test_object_is_deleted_with_its_last_finalizer(api: Api) -> None:
    sent = config_map()
    sent["metadata"]["finalizers"] = ["example.org/hold"]
    await api.create(CONFIG_MAPS, sent)
    held = (await api.delete(f"{CONFIG_MAPS}/settings")).body
    assert held["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:05Z"
    added = held["metadata"] | {"finalizers": ["example.org/hold", "example.org/more"]}
    refused = await api.update(f"{CONFIG_MAPS}/settings", held | {"metadata": added})
    assert refused.refusal[:2] == (422, "Invalid")
    assert "no new finalizers can be added if the object is being deleted" in refused["message"]
    freed = held["metadata"] | {"finalizers": []}
    assert (await api.update(f"{CONFIG_MAPS}/settings", held | {"metadata": freed})).code == 200
    assert (await api.get(f"{CONFIG_MAPS}/settings")).code == 404


async def test_dry_run_returns_the_result_and_stores_nothing(api: Api) -> None:
    first = (await api.create(CONFIG_MAPS, config_map(a="1"))).body
    answer = await api.update(f"{CONFIG_MAPS}/settings", first | {"data": {"a": "2"}}, dryRun="All")
    assert answer["data"] == {"a": "2"}
    assert (await api.get(f"{CONFIG_MAPS}/settings")).body == first
