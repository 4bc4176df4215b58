"""Tests that each setting has a row in the matrix, and that replaced parts are listed with their tests."""

import re
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Final

import pytest
import yaml
from deploy.packages import chartvalues
from deploy.packages.operatordeployment import cluster
from testkit import repository
from tests.shipped import factors, pairs, replaced
from tests.shipped.factors import ALWAYS, ANNOTATIONS, ELSEWHERE, FIELDS, FLAGS, Value

from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, DEPLOYMENTS
from leaderworkerset.api import labels
from leaderworkerset.install import workload
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.operatornames import CERTIFICATES, GROUP_RESTARTS
from leaderworkerset.install.workload import CONFIGURATION_KEY
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager import goflags, managerflags
from leaderworkerset.manager.config import configuration, configurationfile
from leaderworkerset.operator import openshift, operand, operatorspec
from leaderworkerset.operator.operand import ClusterState, OperatorPlace
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatorspec import OPERAND_VERBOSITY

SET_BY_US: Final = frozenset(
    [
        "PREFIX",
        "NAME",
        "TEMPLATE_REVISION_HASH",
        "GROUP_INDEX",
        "WORKER_INDEX",
        "GROUP_KEY",
        "SUBGROUP_INDEX",
        "SUBGROUP_KEY",
        "SIZE",
        "REPLICAS",
        "LEADER_NAME",
        "SUBGROUP_SIZE",
        "SUBGROUP_POLICY_TYPE",
        "SUBDOMAIN_POLICY",
        "LEADER_REQUESTS_TPUS",
        "MARKED_STARTING",
        "RECREATIONS",
        "RECREATED_LEADER",
        "FORMER_NODES",
        "FORMER_LEADER",
        "AVOIDED_NODE",
        "RECREATE_AFTER",
        "RECREATION_STATE",
        "FAILED_POD",
        "FAILED_POD_UID",
        "FAILED_POD_RESTARTS",
        "LONGEST_FAILED_RUN",
        "FAILURE",
        "FAILURE_ORIGIN",
        "DELETED_AT",
        "RESUMED",
        "RESTARTED_IN_PLACE",
        "IN_PLACE_REVISION",
        "IN_PLACE_STATEFULSET_REVISION",
        "IN_PLACE_REFUSED",
        "IN_PLACE_BEFORE",
        "MOVE_GROUP",
        "MOVING",
        "IN_PLACE_RESOURCES",
        "HISTORY_OF",
        "PAUSED_PARTITION",
        "GANG_GROUP",
        "GANG_GATE",
        "CONFIGURATION_HASH",
        "SPEC_DIGEST",
        "ROLE",
        "SCHEDULING_LEVEL",
        "GROUP_IDENTITY",
        "LEADER_ADDRESS",
        "WORKLOAD_AWARE_SCHEDULING",
        "WORKLOAD_NAME",
        "GROUP_RESTART_COUNTS",
        "GROUP_RESTART_BUDGET_EXHAUSTED",
        "RESTARTS_USED",
        "GROUP_RESTART_BUDGET_CLEANUP",
        "GROUP_READY",
        "REPLACEMENT_GATE",
        "REPLACES",
        "PROGRESS",
        "HANG",
        "GROUP_ENDED",
        "EPISODE",
        "EPISODE_GROUP",
        "EPISODE_NUMBER",
        "EPISODE_OUTCOME",
    ]
)
"""Labels and annotations, by name in `labels`, that only controllers, webhooks and commands write."""

OF_THE_OPERATOR: Final = {"managementState", "nodePlacement", "operatorLogLevel"}
"""Fields of the operator object for the operator itself and for the nodes of the manager."""

OF_THE_MANAGER: Final = {"logLevel", "observedConfig", "unsupportedConfigOverrides"}
"""Fields of the operator object for the manager: flags, TLS, and any field of the configuration."""

IN_THE_CONFIGURATION: Final = {
    "enableCertManager",
    "gangSchedulingManagement",
    "groupRestarts",
    "featureGates",
    "recorder",
    "disruptionBudgets",
    "maintenance",
    "podAdmission",
}
"""Chart values that are manager settings. Other values configure its Deployment and other objects."""

MANAGER_OF_THE_CHART: Final = (
    repository.ROOT / "deploy" / "helm" / "lws" / "templates" / "deployment-controller-manager.yaml"
)


@cache
def tried() -> dict[str, set[Value]]:
    """Return the values of each setting in the matrix.

    They are created on demand, so that collecting tests is fast.
    """
    rows = pairs.rows()
    return {name: {row[name] for row in rows} for name in rows[0]}


def test_every_setting_is_in_the_matrix_or_tested_elsewhere() -> None:
    fields = [name for name, _ in factors.fields()]
    flags = [f"--{flag.name}" for flag in managerflags.FLAGS]
    annotations = [
        value
        for name, value in vars(labels).items()
        if name not in SET_BY_US and isinstance(value, str) and value.startswith(labels.PREFIX)
    ]
    assert {*tried(), *ALWAYS, *ELSEWHERE} == {*fields, *flags, *annotations, "ENABLE_WEBHOOKS"}


def test_settings_tested_elsewhere_are_set_there() -> None:
    names = {value: f"labels.{name}" for name, value in vars(labels).items() if isinstance(value, str)}
    files = dict(repository.files_of_tests())
    texts = {name: files[path].read_text() for name, path in ELSEWHERE.items()}
    assert [name for name, text in texts.items() if names.get(name, name) not in text] == []


def test_every_switch_is_tested_on_and_off() -> None:
    switches = {name for name, kind in factors.fields() if kind is bool}
    assert switches
    assert {name for name in switches if not tried()[name] >= {True, False}} == set()
    flags = {f"--{flag.name}" for flag in managerflags.FLAGS if flag.is_boolean} - ELSEWHERE.keys()
    assert {name for name in flags if not tried()[name] >= {"true", "false"}} == set()


def test_every_pair_of_values_is_in_a_row() -> None:
    seen = [{factor.names: tuple(row[name] for name in factor.names) for factor in FIELDS} for row in pairs.rows()]
    missing = [
        (one.names, first, other.names, second)
        for one, other in combinations(FIELDS, 2)
        for first, second in product(one.values, other.values)
        if not any(row[one.names] == first and row[other.names] == second for row in seen)
    ]
    assert missing == []
    singly = [(factor.names, value) for factor in (*FLAGS, *ANNOTATIONS) for value in factor.values]
    assert [
        one for one in singly if not any(tuple(row[name] for name in one[0]) == one[1] for row in pairs.rows())
    ] == []


def test_every_row_is_accepted() -> None:
    places = {"directory": "/tmp", "metrics": 1, "probes": 2}
    head = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    for row in pairs.rows():
        given = goflags.parse(factors.flags(row, **places), managerflags.FLAGS)
        decoded = configuration.decode(head | factors.document(row, **places))
        configurationfile.check(managerflags.override(decoded, given))


@pytest.mark.parametrize("profile", ["Old", "Intermediate", "Modern"])
@pytest.mark.parametrize("issuer", ["internal", ""])
@pytest.mark.parametrize("level", OPERAND_VERBOSITY)
def test_arguments_and_file_of_the_operand_are_tested(level: str, issuer: str, profile: str) -> None:
    """Overrides may set any field of the configuration."""
    assert operator_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ].keys() == (OF_THE_OPERATOR | OF_THE_MANAGER)
    chosen = cluster(logLevel=level)
    annotations = {CERTIFICATES: issuer, GROUP_RESTARTS: '{"backoff": false, "maxGroupRestarts": 3}'}
    chosen["metadata"] |= {"uid": "u", "annotations": annotations}
    place = OperatorPlace(namespace="operators", image="lws:1", version="1", declared=MANAGED)
    around = ClusterState(tls=openshift.tls_section({"spec": {"tlsSecurityProfile": {"type": profile}}}))
    built = operand.build(place, operatorspec.read(chosen), chosen, around)
    (deployment,) = (obj for kind, obj in built if kind == DEPLOYMENTS)
    (file,) = (obj for kind, obj in built if kind == CONFIG_MAPS)
    assert_tried_document(yaml.safe_load(file["data"][CONFIGURATION_KEY]))
    assert_tried_arguments(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


def test_settings_of_the_chart_are_tested() -> None:
    """The matrix contains the enumeration values in the schema, and the fields of its sections."""
    schemas = {one.name: one.schema for one in chartvalues.values()}
    reaching = {name for name, schema in schemas.items() if "additionalProperties" in schema}
    assert {*reaching, "enableCertManager", "podAdmission"} == IN_THE_CONFIGURATION
    for section in reaching:
        for field, schema in schemas[section]["properties"].items():
            assert tried()[f"{section}.{field}"] >= set(schema.get("enum", ()))
    arguments = re.findall(r"(--[\w-]+)=\{\{ \.Values\.(\S+)", MANAGER_OF_THE_CHART.read_text())
    assert arguments
    for flag, value in arguments:
        assert tried()[flag] >= set(schemas[value]["enum"])


def test_arguments_of_an_installation_are_tested() -> None:
    (container,) = workload.deployment(InstallSettings())["spec"]["template"]["spec"]["containers"]
    assert_tried_arguments(container["args"])


def assert_tried_arguments(arguments: list[str]) -> None:
    """Assert that each argument is common to all processes, or is a flag with a value in the matrix."""
    for name, _, value in (argument.partition("=") for argument in arguments):
        assert name in ALWAYS or value in tried()[name]


def assert_tried_document(document: JSONObject) -> None:
    """Assert that each field has a row, and that the matrix contains all values of switches and enumerations."""
    for section, content in document.items():
        for field, value in content.items() if isinstance(content, dict) else ():
            name = f"{section}.{field}"
            assert name in tried()
            assert not isinstance(value, bool | str) or value in tried()[name]
            assert not isinstance(value, list) or set(value) <= _members(tried()[name])


def _members(values: set[Value]) -> set[JSON]:
    return {member for value in values if isinstance(value, tuple) for member in value}


@pytest.mark.slow
def test_replaced_parts_are_listed_with_a_test_of_the_original() -> None:
    listed = [(one.part, place) for one in replaced.REPLACED for place in one.places]
    assert sorted(listed) == sorted(replaced.found(repository.files_of_tests()))
    assert {one.shipped for one in replaced.REPLACED} <= {name for name, _ in repository.files_of_tests()}


def test_replaced_parts_are_detected(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
from leaderworkerset.manager import lwsmanager, probes
from leaderworkerset.manager.controllers import Controllers as Assembled

class Fake:
    async def request(self, request): ...

def test(monkeypatch):
    Assembled(None)
    monkeypatch.setattr(probes, "log", None)
    lwsmanager.webhooks(None)
"""
    )
    parts = ["leaderworkerset.manager.controllers.Controllers", "leaderworkerset.manager.lwsmanager.webhooks"]
    assert sorted(replaced.found([(path.name, path) for path in tmp_path.iterdir()])) == [
        (part, "test_it.py") for part in (*parts, replaced.PATCHED, replaced.TRANSPORT)
    ]
