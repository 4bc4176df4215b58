"""Tests that the bundle linter accepts the project's bundles, and finds each fault."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from deploy.packages import bundle, bundlelint
from deploy.packages.bundle import Package, Publication
from deploy.packages.bundlelint import Bundle, errors
from deploy.packages.operatordeployment import OperatorSettings

from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorprocess import registry
from leaderworkerset.operator.verbosity import Verbosity

KINDS = registry(OperatorPlace(namespace="n", image="", version="", declared=MANAGED), Verbosity())
RELEASE = Publication()
DIGESTS = OperatorSettings(image=f"example.com/o@sha256:{'0a' * 32}", operand_image=f"example.com/l@sha256:{'0b' * 32}")


def build(package: Package = bundle.LEADER_WORKER_SET, settings: OperatorSettings = DIGESTS) -> Bundle:
    version = bundle.version(package, KINDS, MANAGED, settings, RELEASE)
    return Bundle(version, bundle.beside(RELEASE)[:1], bundle.metadata(package))


GOOD = build()


@pytest.mark.parametrize("package", bundle.PACKAGES, ids=lambda package: package.name)
def test_own_bundles_have_no_errors(package: Package) -> None:
    """The linter accepts the project's bundles (R-OP-69)."""
    assert errors(build(package), released=True) == []
    assert errors(build(package, OperatorSettings())) == []


def test_released_bundle_names_images_by_digest() -> None:
    """A tag may refer to another image later, or in a mirror (R-OP-70)."""
    found = errors(build(settings=OperatorSettings()), released=True)
    assert [one.endswith("a digest is required") for one in found] == [True] * len(found)
    assert found


def spec(found: Bundle) -> dict[str, Any]:
    inner: dict[str, Any] = found.version["spec"]
    return inner


def deployment(found: Bundle) -> dict[str, Any]:
    one: dict[str, Any] = spec(found)["install"]["spec"]["deployments"][0]
    return one


def container(found: Bundle) -> dict[str, Any]:
    one: dict[str, Any] = deployment(found)["spec"]["template"]["spec"]["containers"][0]
    return one


def owned(found: Bundle) -> dict[str, Any]:
    one: dict[str, Any] = spec(found)["customresourcedefinitions"]["owned"][0]
    return one


FAULTS: dict[str, Callable[[Bundle], Any]] = {
    "must be a semantic version": lambda one: spec(one).update(version="1.0"),
    "metadata.name": lambda one: one.version["metadata"].update(name="other.v1.0.0"),
    "default channel": lambda one: one.annotations["annotations"].update({f"{bundlelint.PREFIX}channels.v1": "beta"}),
    "spec.icon: required": lambda one: spec(one).pop("icon"),
    "createdAt is required": lambda one: one.version["metadata"]["annotations"].pop("createdAt"),
    "categories": lambda one: one.version["metadata"]["annotations"].update(categories="Nice Things"),
    "capabilities must be one of": lambda one: one.version["metadata"]["annotations"].update(capabilities="Everything"),
    "must contain all of": lambda one: spec(one)["installModes"].pop(),
    "at least one must be supported": lambda one: [mode.update(supported=False) for mode in spec(one)["installModes"]],
    "does not contain a CRD with version": lambda one: owned(one).update(version="v2"),
    "specDescriptors is required": lambda one: owned(one).pop("specDescriptors"),
    "not listed as owned": lambda one: spec(one)["customresourcedefinitions"].update(owned=[]),
    "has no permissions": lambda one: deployment(one)["spec"]["template"]["spec"].update(serviceAccountName="other"),
    "selector does not match": lambda one: deployment(one)["spec"]["selector"].update(matchLabels={"a": "b"}),
    "resource requests are required": lambda one: container(one).pop("resources"),
    "wildcards are not allowed": lambda one: spec(one)["install"]["spec"]["permissions"][0]["rules"].append(
        {"verbs": ["*"]}
    ),
    "not listed in spec.relatedImages": lambda one: container(one).update(image="example.com/other:1"),
    "was not replaced": lambda one: container(one)["args"].append("${OPERATOR_IMAGE}"),
    "bytes exceed the limit of": lambda one: spec(one).update(description="x" * bundlelint.LIMIT),
}


@pytest.mark.parametrize("words", FAULTS)
def test_each_fault_is_detected(words: str) -> None:
    found = copy.deepcopy(GOOD)
    FAULTS[words](found)
    assert [one for one in errors(found) if words in one]
