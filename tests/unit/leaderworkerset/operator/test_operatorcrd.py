"""The definition of LeaderWorkerSetOperators."""

from leaderworkerset.operator.operatorcrd import operator_crd

SPEC = operator_crd()["spec"]
VERSION = SPEC["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]


def test_its_names_are_those_of_the_go_operator() -> None:
    """R-OP-1."""
    assert operator_crd()["metadata"]["name"] == "leaderworkersetoperators.operator.openshift.io"
    assert (SPEC["scope"], SPEC["names"]["listKind"]) == ("Cluster", "LeaderWorkerSetOperatorList")
    assert (VERSION["name"], VERSION["subresources"]) == ("v1", {"status": {}})


def test_it_is_a_singleton() -> None:
    """R-OP-2."""
    (rule,) = ROOT["x-kubernetes-validations"]
    assert rule["rule"] == "self.metadata.name == 'cluster'"
    assert "singleton" in rule["message"]


def test_spec_is_required_and_has_the_agreed_fields() -> None:
    """R-OP-3, R-OP-4."""
    assert ROOT["required"] == ["spec"]
    fields = ROOT["properties"]["spec"]["properties"]
    assert set(fields) == {
        "managementState",
        "logLevel",
        "operatorLogLevel",
        "observedConfig",
        "unsupportedConfigOverrides",
        "nodePlacement",
    }
    assert fields["logLevel"]["default"] == "Normal"
    assert fields["managementState"]["pattern"] == "^(Managed|Unmanaged|Force|Removed)$"
    assert set(fields["nodePlacement"]["properties"]) == {"nodeSelector", "tolerations"}
