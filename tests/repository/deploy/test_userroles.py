"""Tests which roles the user roles extend, and which permissions they must not contain."""

from deploy.packages import userroles

from leaderworkerset.kinds.managedkinds import MANAGED

ROLES = {obj["metadata"]["name"]: obj for _, obj in userroles.build(MANAGED)}


def allowed(name: str) -> set[tuple[str, str]]:
    return {
        (resource, verb) for rule in ROLES[name]["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }


def test_every_kind_has_two_roles() -> None:
    assert len(ROLES) == 2 * len(MANAGED.custom_resources)
    for resource in MANAGED.custom_resources:
        for role in ("editor", "viewer"):
            (groups,) = {
                tuple(rule["apiGroups"]) for rule in ROLES[f"lws-{resource.kind.lower()}-{role}-role"]["rules"]
            }
            assert groups == (resource.group,)


def test_roles_are_aggregated_to_those_of_kubernetes() -> None:
    """`admin` includes `edit`, and `edit` includes `view`."""
    for name, role in ROLES.items():
        joined = {label for label in role["metadata"]["labels"] if label.startswith("rbac.")}
        joins = "edit" if name.endswith("-editor-role") else "view"
        assert joined == {f"rbac.authorization.k8s.io/aggregate-to-{joins}"}


def test_editors_may_scale_and_viewers_may_not() -> None:
    assert ("leaderworkersets/scale", "patch") in allowed("lws-leaderworkerset-editor-role")
    assert ("leaderworkersets", "deletecollection") in allowed("lws-leaderworkerset-editor-role")
    viewing = allowed("lws-leaderworkerset-viewer-role")
    assert ("leaderworkersets/status", "get") in viewing
    assert {verb for _, verb in viewing} == {"get", "list", "watch"}


def test_no_role_writes_the_status() -> None:
    """Only the manager may write the status."""
    for name in ROLES:
        assert not [one for one in allowed(name) if one[0].endswith("/status") and one[1] != "get"]
