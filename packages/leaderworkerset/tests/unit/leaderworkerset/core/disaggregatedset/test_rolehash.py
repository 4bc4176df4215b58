"""Tests that DisaggregatedSet revisions have the same bytes as in the Go controller."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects.gotypes.mismatch import GoTypeError
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.core.disaggregatedset.rolehash import canonical_json, revision_of

VECTORS_OF = Path(__file__).parents[4] / "vectors"
VECTORS = json.loads((VECTORS_OF / "ds-revision-vectors.json").read_text())
SCHEMA = json.loads((VECTORS_OF / "ds-revision-schema.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_revisions_equal_those_of_the_go_controller(vector: dict[str, Any]) -> None:
    """Revisions equal the revisions of the Go controller (R-DS-20 to R-DS-23)."""
    assert canonical_json(vector["roles"]) == vector["canonical"]
    assert revision_of(vector["roles"]) == vector["revision"]


def test_recorded_vectors_are_complete() -> None:
    assert len(VECTORS) == 36


ADDED = {"maxGroupRestarts"}
"""Fields that were added after the recording are at the end of their struct. Unset fields do not change a hash."""


def test_field_order_equals_the_recorded_one() -> None:
    """The field order equals the recorded order (R-DS-22.1)."""
    for struct, fields in SCHEMA.items():
        known = [name for name in TYPES.fields(struct) if name not in ADDED]
        assert known == [field["json"] for field in fields], struct


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 7},
        {"startupPolicy": "LeaderReady"},
        {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}},
        {"rolloutStrategy": {"type": "RollingUpdate"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_changes_outside_of_templates_keep_the_revision(change: dict[str, Any]) -> None:
    """Changes outside templates do not change the revision (R-DS-21)."""
    plain = disaggregatedset_object()["spec"]["roles"]
    changed = [one | {"spec": one["spec"] | change, "metadata": {"labels": {"a": "b"}}} for one in plain]
    assert revision_of(changed) == revision_of(plain)


@pytest.mark.parametrize(
    "change",
    [
        {"groupIdentity": "Ordinal"},
        {"groupIdentity": ""},
        {"groupIdentity": None},
        {"groupReplacementPolicy": "Immediate"},
        {"podTerminationPolicy": "Parallel"},
        {"scheduling": None},
    ],
    ids=str,
)
def test_defaults_and_replacement_policy_keep_the_revision(change: dict[str, Any]) -> None:
    """A manager that supports the fields finds the revisions of a manager that does not (N-DS-1, N-DS-2)."""
    plain = disaggregatedset_object()["spec"]["roles"]
    assert revision_of([one | {"spec": one["spec"] | change} for one in plain]) == revision_of(plain)


@pytest.mark.parametrize("change", [{"groupIdentity": "Hash"}, {"scheduling": {}}, {"scheduling": {"replica": {}}}])
def test_immutable_fields_change_the_revision(change: dict[str, Any]) -> None:
    """The LeaderWorkerSets of the role are recreated (N-DS-1)."""
    first, second = disaggregatedset_object()["spec"]["roles"]
    changed = [first, second | {"spec": second["spec"] | change}]
    assert revision_of(changed) != revision_of([first, second])
    assert canonical_json(changed)[:-2].startswith(canonical_json([first, second])[:-2])


def test_restart_limit_changes_the_revision() -> None:
    """A restart limit changes the revision (N-RB-18)."""
    plain, limited = role("prefill"), role("prefill")
    limited["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 3
    assert revision_of([limited]) != revision_of([plain])


def test_order_of_roles_changes_the_revision() -> None:
    """The order of roles changes the revision (R-DS-21)."""
    plain = [role("prefill"), role("decode")]
    assert revision_of(plain) != revision_of(plain[::-1])


def test_wrong_type_is_named_by_its_path() -> None:
    broken = role("prefill") | {"spec": {"leaderWorkerTemplate": {"size": "two"}}}
    with pytest.raises(GoTypeError, match=r"spec\.roles\[0\]\.spec\.leaderWorkerTemplate\.size"):
        revision_of([broken])
