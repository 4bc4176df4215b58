"""Tests the health of objects in Argo CD, Flux and kstatus, with the statuses from the controllers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
import yaml
from deploy import generate
from deploy.packages import health, k9s
from tests import builders, disaggregated
from tests.unit.leaderworkerset.operator.clusters import NOW, PLACE, cluster, running

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import disaggregatedset, leaderworkerset
from leaderworkerset.api.conditions import (
    AVAILABLE,
    COMPLETE,
    CONDITIONS,
    FAILED,
    MOVE_IN_PROGRESS,
    PROGRESSING,
    UPDATE_IN_PROGRESS,
    WORKLOAD_SCHEDULING_CREATED,
    ConditionOutcome,
    ObjectHealth,
)
from leaderworkerset.api.resources import DISAGGREGATED_SETS, ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import setstatus
from leaderworkerset.core.disaggregatedset.setstatus import ConditionPair
from leaderworkerset.core.leaderworkerset import status
from leaderworkerset.core.leaderworkerset.status import StatusCounts
from leaderworkerset.install.operatornames import OPERATORS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator import operatorstatus
from leaderworkerset.operator.operatorspec import OperatorSettings
from leaderworkerset.operator.operatorstatus import SyncOutcome
from lwsctl.cli import app

DEPLOYMENT: Final[JSONObject] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "operators", "name": "lws-controller-manager"},
    "spec": {"replicas": 2},
}
ROLLING: Final = (UPDATE_IN_PROGRESS, PROGRESSING)


def written(*history: Sequence[ConditionOutcome], exhausted: bool = False) -> JSONObject:
    """Return a LeaderWorkerSet that had these conditions one after the other.

    The last one has the newest generation.
    """
    obj = builders.leaderworkerset_object(metadata={"generation": 2})
    for outcomes in history:
        found = leaderworkerset.decode(obj)
        new = status.compose(found, StatusCounts(2, 1, 1), outcomes, NOW, is_degraded=exhausted)
        obj = obj | {"status": leaderworkerset.encode_status(new)}
    return obj


def edited(obj: JSONObject) -> JSONObject:
    """Return an object whose spec changed after its controller observed it."""
    return obj | {"metadata": meta.metadata(obj) | {"generation": meta.generation(obj) + 1}}


def refused(obj: JSONObject) -> JSONObject:
    return with_condition(obj, WORKLOAD_SCHEDULING_CREATED, "False")


def with_condition(obj: JSONObject, outcome: ConditionOutcome, value: str = "True") -> JSONObject:
    """Return an object with a condition that does not depend on counts."""
    condition = {"type": outcome.type, "status": value, "message": outcome.message}
    return obj | {"status": obj["status"] | {"conditions": [*obj["status"]["conditions"], condition]}}


def split(*history: ConditionPair) -> JSONObject:
    obj = disaggregated.disaggregatedset_object(metadata={"generation": 4})
    for outcome in history:
        before = disaggregatedset.decode(obj).status
        found = setstatus.conditions(before.conditions or () if before else (), outcome, 4, NOW)
        new = disaggregatedset.DisaggregatedSetStatus(observed_generation=4, conditions=found)
        obj = obj | {"status": disaggregatedset.encode_status(new)}
    return obj


def operated(outcome: SyncOutcome, *, available: int = 2, **spec: Any) -> JSONObject:
    obj = cluster(**spec)
    new = operatorstatus.refresh(
        obj, running(DEPLOYMENT, available=available), OperatorSettings(), outcome, place=PLACE, now=NOW
    )
    return obj | {"status": new}


def scaler(state: str | None) -> JSONObject:
    conditions = (
        [] if state is None else [{"type": "Ready", "status": state, "reason": "Bound", "observedGeneration": 1}]
    )
    return {
        "apiVersion": ROLE_SCALERS.api_version,
        "kind": ROLE_SCALERS.kind,
        "metadata": {"name": "split-prefill", "generation": 1},
        "status": {"conditions": conditions},
    }


STATES: Final[Mapping[str, tuple[JSONObject, str, str, str]]] = {
    "new": (written(), "Progressing", "InProgress", "Current"),
    "starting": (written((PROGRESSING,)), "Progressing", "InProgress", "Current"),
    "ready": (written((PROGRESSING,), (AVAILABLE,)), "Healthy", "Current", "Current"),
    "edited": (edited(written((AVAILABLE,))), "Progressing", "InProgress", "InProgress"),
    "rolling": (written((AVAILABLE,), ROLLING), "Progressing", "InProgress", "Current"),
    "rolled": (written(ROLLING, (AVAILABLE,)), "Healthy", "Current", "Current"),
    "exhausted": (written((PROGRESSING,), (), exhausted=True), "Degraded", "Failed", "Current"),
    "exhausted in a rollout": (written((AVAILABLE,), ROLLING, exhausted=True), "Degraded", "Failed", "Current"),
    "recovered": (written((AVAILABLE,)), "Healthy", "Current", "Current"),
    "without its Workload": (refused(written((PROGRESSING,))), "Progressing", "InProgress", "Current"),
    "ready without its Workload": (refused(written((AVAILABLE,))), "Progressing", "InProgress", "Current"),
    "with its Workload": (
        with_condition(written((AVAILABLE,)), WORKLOAD_SCHEDULING_CREATED),
        "Healthy",
        "Current",
        "Current",
    ),
    "complete": (written((AVAILABLE,), (COMPLETE,)), "Healthy", "Current", "Current"),
    "complete and edited": (edited(written((COMPLETE,))), "Progressing", "InProgress", "InProgress"),
    "started again": (written((COMPLETE,), (PROGRESSING,)), "Progressing", "InProgress", "Current"),
    "failed at its deadline": (written((PROGRESSING,), (FAILED,)), "Degraded", "Failed", "Current"),
    "complete after a failure": (written((FAILED,), (COMPLETE,)), "Healthy", "Current", "Current"),
    "leaves a node": (with_condition(written((AVAILABLE,)), MOVE_IN_PROGRESS), "Healthy", "Current", "Current"),
    "moves": (
        with_condition(written((AVAILABLE,), (PROGRESSING,)), MOVE_IN_PROGRESS),
        "Progressing",
        "InProgress",
        "Current",
    ),
    "moved": (with_condition(written((AVAILABLE,)), MOVE_IN_PROGRESS, "False"), "Healthy", "Current", "Current"),
    "a new DisaggregatedSet": (split(), "Progressing", "InProgress", "Current"),
    "one that rolls": (split(setstatus.AVAILABLE, setstatus.PROGRESSING), "Progressing", "InProgress", "Current"),
    "one that is ready": (split(setstatus.PROGRESSING, setstatus.AVAILABLE), "Healthy", "Current", "Current"),
    "one that is edited": (edited(split(setstatus.AVAILABLE)), "Progressing", "InProgress", "InProgress"),
    "a new scaler": (scaler(None), "Progressing", "InProgress", "Current"),
    "a scaler that is bound": (scaler("True"), "Healthy", "Current", "Current"),
    "a new operator": (cluster(), "Progressing", "InProgress", "Current"),
    "managers that run": (operated(SyncOutcome()), "Healthy", "Current", "Current"),
    "managers that start": (operated(SyncOutcome(), available=1), "Progressing", "InProgress", "Current"),
    "managers that are replaced": (
        operated(SyncOutcome(changes_deployment=True)),
        "Progressing",
        "InProgress",
        "Current",
    ),
    "what could not be applied": (
        operated(SyncOutcome(error="no", is_complete=False)),
        "Degraded",
        "Failed",
        "Current",
    ),
    "what is missing": (
        operated(SyncOutcome(missing="cert-manager", is_complete=False)),
        "Degraded",
        "Failed",
        "Current",
    ),
    "what is not managed": (
        operated(SyncOutcome(), available=0, managementState="Removed"),
        "Suspended",
        "Current",
        "Current",
    ),
}
"""Objects by state, with their health in Argo CD, in Flux with this project's expressions, and in kstatus."""


def kind_of(obj: JSONObject) -> str:
    return str(obj["kind"])


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    data = yaml.safe_load(generate.neighbours()["neighbours/argocd.yaml"])["data"]
    return {name.rpartition("_")[2]: text for name, text in data.items()}


@pytest.fixture(scope="module")
def expressions() -> dict[str, JSONObject]:
    found = yaml.safe_load(generate.neighbours()["neighbours/flux.yaml"])["spec"]["healthCheckExprs"]
    return {one["kind"]: one for one in found}


def test_every_defined_kind_has_health_checks() -> None:
    assert set(health.HEALTH) == {*MANAGED.custom_resources, OPERATORS}
    assert {kind_of(obj) for obj, *_ in STATES.values()} == {resource.kind for resource in health.HEALTH}


@pytest.mark.parametrize("state", STATES)
def test_argo_cd_shows_the_state_of_an_object(programs: dict[str, str], state: str) -> None:
    lua51 = pytest.importorskip("lupa.lua51", reason="lupa is not installed")
    obj, expected, *_ = STATES[state]
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(obj, recursive=True)
    told = lua.execute(programs[kind_of(obj)])
    assert told["status"] == expected
    assert told["message"]


@pytest.mark.parametrize("state", STATES)
def test_flux_expressions_wait_until_an_object_is_ready(expressions: dict[str, JSONObject], state: str) -> None:
    cel = pytest.importorskip("cel", reason="common-expression-language is not installed")
    obj, _, expected, _ = STATES[state]
    told = expressions[kind_of(obj)]
    context = {"status": {}, **obj}
    assert told["apiVersion"] == obj["apiVersion"]
    failed = "failed" in told and cel.evaluate(told["failed"], context)
    current = cel.evaluate(told["current"], context)
    assert ("Failed" if failed else "Current" if current else "InProgress") == expected


def kstatus(obj: JSONObject) -> str:
    """Return the kstatus result for unknown kinds, according to its documentation."""
    told = meta.status(obj)
    states = {one["type"]: one["status"] for one in told.get("conditions") or []}
    if meta.is_deleting(obj):
        return "Terminating"
    if "observedGeneration" in told and told["observedGeneration"] != meta.generation(obj):
        return "InProgress"
    if states.get("Stalled") == "True":
        return "Failed"
    is_waiting = states.get("Reconciling") == "True" or states.get("Ready") in {"False", "Unknown"}
    return "InProgress" if is_waiting else "Current"


@pytest.mark.parametrize("state", STATES)
def test_kstatus_alone_waits_only_until_a_change_is_observed(state: str) -> None:
    """kstatus ignores the project's conditions, so objects have the same health as with the Go controller.

    The page contains advice.
    """
    obj, _, _, expected = STATES[state]
    assert kstatus(obj) == expected


def test_every_condition_of_a_set_is_tested() -> None:
    """Each LeaderWorkerSet condition is True in one of these objects, and False in another object."""
    objects = [obj for obj, *_ in STATES.values() if kind_of(obj) == "LeaderWorkerSet"]
    seen = {(one["type"], one["status"]) for obj in objects for one in obj.get("status", {}).get("conditions", [])}
    assert {(outcome.type, value) for outcome in CONDITIONS for value in ("True", "False")} == seen


@pytest.mark.parametrize("resource", health.HEALTH, ids=lambda resource: resource.kind)
def test_shipped_checks_name_each_relevant_condition(
    programs: dict[str, str], expressions: dict[str, JSONObject], resource: Resource
) -> None:
    conditions = health.HEALTH[resource].conditions
    counted = {kind for kind, meaning in conditions.items() if meaning is not ObjectHealth.NEUTRAL}
    flux = " ".join(expressions[resource.kind].values())
    assert {kind for kind in counted if f'"{kind}"' in programs[resource.kind]} == counted
    assert {kind for kind in counted if f'"{kind}"' in flux} == counted


def test_k9s_keys_run_existing_commands() -> None:
    """`lws` parses options and commands. `--help` replaces the execution."""
    plugins = k9s.plugins()["plugins"]
    assert len({plugin["shortCut"] for plugin in plugins.values()}) == len(plugins) == len(k9s.KEYS)
    for key in k9s.KEYS:
        assert app.run(["--context", "c", "-n", "n", *key.words.split(), "web", "--help"]) == 0
    asks = {name for name, plugin in plugins.items() if plugin["confirm"]}
    assert asks == {"lws-rollout-undo"}


def test_k9s_columns_equal_the_definitions() -> None:
    views = k9s.views(MANAGED.definitions())["views"]
    assert set(views) == {f"{one.api_version}/{one.plural}" for one in MANAGED.custom_resources}
    assert "READY:.status.readyReplicas" in views["leaderworkerset.x-k8s.io/v1/leaderworkersets"]["columns"]
    assert views[f"{DISAGGREGATED_SETS.api_version}/{DISAGGREGATED_SETS.plural}"]["columns"][:2] == [
        "NAMESPACE",
        "NAME",
    ]
