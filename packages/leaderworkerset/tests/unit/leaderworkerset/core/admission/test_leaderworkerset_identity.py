"""Tests rejected claims, group identities, and restart limits."""

from typing import Any

import pytest
from tests.unit.leaderworkerset.core.admission.test_leaderworkerset import POD, errors, lws

from leaderworkerset.core.admission.leaderworkerset import (
    CLAIMS_TEXT,
)


def claim(name: str = "data", storage: str = "1Gi", **metadata: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name} | metadata, "spec": spec}


@pytest.mark.parametrize(
    ("old", "new", "is_allowed"),
    [
        ([claim()], [claim()], True),
        ([claim()], [claim(storage="1024Mi")], True),
        ([claim()], [claim(labels={"a": "b"})], True),
        ([], None, True),
        ([claim()], [claim(storage="2Gi")], False),
        ([claim()], [claim("other")], False),
        ([claim()], [], False),
        (None, [claim()], False),
    ],
    ids=["same", "same amount", "dropped field", "none", "amount", "name", "removed", "added"],
)
def test_immutable_claim_template_changes_are_rejected(old: Any, new: Any, is_allowed: bool) -> None:
    """Upstream accepts such changes and then fails permanently (Q-7)."""
    found = errors(lws(template={"volumeClaimTemplates": new}), lws(template={"volumeClaimTemplates": old}))
    assert found == (
        [] if is_allowed else [f"spec.leaderWorkerTemplate.volumeClaimTemplates: Forbidden: {CLAIMS_TEXT}"]
    )


IDENTITY = "spec.groupIdentity"


HASH: dict[str, Any] = {"groupIdentity": "Hash"}


CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


LIMITED = {"maxGroupRestarts": 3}


@pytest.mark.parametrize(("new", "old"), [({}, HASH), (HASH, {}), (HASH, {"groupIdentity": "Ordinal"})])
def test_group_identity_is_immutable(new: dict[str, Any], old: dict[str, Any]) -> None:
    """The group identity is immutable (N-HASH-9, N-VAL-1)."""
    value = new.get("groupIdentity", "Ordinal")
    assert errors(lws(**new), lws(**old)) == [f'{IDENTITY}: Invalid value: "{value}": groupIdentity is immutable']


def test_absent_group_identity_is_ordinal() -> None:
    """The default group identity is ordinal (N-VAL-1)."""
    assert errors(lws(), lws(groupIdentity="Ordinal")) == []
    assert errors(lws(groupIdentity="Ordinal"), lws()) == []


def test_immediate_replacement_requires_random_keys() -> None:
    """Immediate replacement requires random keys (N-VAL-2)."""
    path = "spec.groupReplacementPolicy"
    expected = f'{path}: Invalid value: "Immediate": Immediate is only supported with groupIdentity Hash'
    assert errors(lws(groupReplacementPolicy="Immediate")) == [expected]
    assert errors(lws(groupReplacementPolicy="Immediate", **HASH)) == []
    assert errors(lws(**HASH), lws(groupReplacementPolicy="Immediate", **HASH)) == []


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (lws(template={"volumeClaimTemplates": [CLAIM]}, **HASH), "volumeClaimTemplates are"),
        (lws(rollout={"partition": 1}, **HASH), "rollingUpdateConfiguration.partition is"),
    ],
)
def test_random_keys_reject_unsupported_fields(obj: dict[str, Any], text: str) -> None:
    """Groups with random keys do not support some fields (N-API-7, N-VAL-3, N-VAL-4)."""
    expected = f'{IDENTITY}: Invalid value: "Hash": {text} not supported with groupIdentity Hash'
    assert errors(obj) == [expected]
    assert errors(obj | {"spec": obj["spec"] | {"groupIdentity": "Ordinal"}}) == []


@pytest.mark.parametrize("field", ["leaderTemplate", "workerTemplate"])
def test_random_keys_reject_a_fixed_leader_host_name(field: str) -> None:
    """Workers are named after the host name (N-ADM-3). A StatefulSet sets the names of its pods."""
    named = {field: {"spec": POD["spec"] | {"hostname": "head"}}}
    text = "a hostname in the leaders' template is not supported with groupIdentity Hash, because all leaders would have the same hostname"
    assert errors(lws(template=named, **HASH)) == [f'{IDENTITY}: Invalid value: "Hash": {text}']
    assert errors(lws(template=named | {"size": 1}, **HASH)) == []
    assert errors(lws(template=named)) == []


@pytest.mark.parametrize(("size", "longest"), [(1, 54), (2, 43), (4, 43)])
def test_names_must_leave_space_for_random_keys(size: int, longest: int) -> None:
    """Names must leave space for random keys (N-VAL-5, N-VAL-8)."""
    allowed, refused = "a" * longest, "a" * (longest + 1)
    expected = (
        f'metadata.name: Invalid value: "{refused}": must be no more than {longest} characters with groupIdentity'
    )
    assert errors(lws(metadata={"name": allowed}, template={"size": size}, **HASH)) == []
    assert errors(lws(metadata={"name": refused}, template={"size": size}, **HASH)) == [f"{expected} Hash"]


@pytest.mark.parametrize("policy", ["None", "Default"])
def test_restart_limit_requires_a_policy_that_recreates(policy: str) -> None:
    """A restart limit requires a policy that recreates groups (N-VAL-6)."""
    path = "spec.leaderWorkerTemplate.maxGroupRestarts"
    text = "maxGroupRestarts is only supported when restartPolicy recreates the group"
    assert errors(lws(template=LIMITED | {"restartPolicy": policy})) == [f"{path}: Invalid value: 3: {text}"]


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart"])
@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
def test_restart_limit_is_valid_for_both_identities(policy: str, identity: str) -> None:
    """A restart limit is valid for both identities (N-VAL-6)."""
    assert errors(lws(template=LIMITED | {"restartPolicy": policy}, groupIdentity=identity)) == []
