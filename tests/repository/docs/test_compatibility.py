"""Tests that each interface on the compatibility page has a class, and each type of run has one result."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from docs import generate_compatibility, stability
from tests import results
from tests.controlplane import build
from tests.unit.leaderworkerset.api.test_fieldtypes import ADDED

from leaderworkerset.api import kubernetesfeatures, labels
from leaderworkerset.manager.config.configuration import FeatureGates
from lwsctl.cli.commandtable import COMMANDS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_field_absent_upstream_has_a_class() -> None:
    assert set(stability.FIELDS) == ADDED


def test_every_label_and_annotation_has_one_class() -> None:
    named = Counter([*stability.CHOSEN, *stability.KEPT, *stability.UPSTREAM])
    own = {value for value in vars(labels).values() if isinstance(value, str) and value.startswith(labels.PREFIX)}
    assert set(named) == own - {labels.PREFIX}
    assert set(named.values()) == {1}


def test_every_feature_gate_and_new_command_has_a_class() -> None:
    assert set(stability.GATES) == {field.encode_name for field in msgspec.structs.fields(FeatureGates)}
    assert set(stability.NEW_COMMANDS) <= set(COMMANDS)


def test_version_is_tested_if_a_run_without_failures_is_recorded() -> None:
    runs = [run for run in results.read(generate_compatibility.RESULTS) if run.part == "integration"]
    passed = [kubernetesfeatures.parse(run.kubernetes) for run in runs if run.passed and not run.failed]
    assert {version.minor for version in passed if version} == set(kubernetesfeatures.TESTED)


def test_page_has_every_version_of_kubernetes() -> None:
    page = generate_compatibility.compatibility()
    assert all(version.removeprefix("v") in page for version in build.VERSIONS.values())
    assert (
        "| maxUnavailable of StatefulSets | 1.35 (disabled from 1.35.4, enabled again in 1.37.0) | no | no | no | yes |"
        in page
    )


def test_test_of_a_difference_is_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "tests/unit").mkdir(parents=True)
    text = 'def test_differs_from_upstream_a_b() -> None:\n    """R-1: why | so."""\n\n\ndef test_c() -> None: ...\n'
    (tmp_path / "tests/unit/test_it.py").write_text(text)
    (found,) = generate_compatibility.differences(tmp_path)
    assert found == (r"R-1: why \| so.", "tests/unit/test_it.py::test_differs_from_upstream_a_b")
    assert len(list(generate_compatibility.differences())) > 20


def test_result_replaces_the_previous_one_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results.record(path, {"unit": Counter(passed=2), "integration on Kubernetes": Counter(passed=1, error=1)})
    results.record(path, {"unit": Counter(passed=3, skipped=1)})
    ran = {(one.part, one.kubernetes): (one.passed, one.failed, one.skipped) for one in results.read(path)}
    assert ran == {("unit", ""): (3, 0, 1), ("integration", build.VERSIONS[build.CHOSEN]): (1, 1, 0)}
    assert generate_compatibility.ran(results.read(path))


def test_two_control_planes_of_one_run_are_distinguished() -> None:
    counts = {"integration on Kubernetes": {"passed": 1}, "integration on the other Kubernetes": {"passed": 2}}
    first, second = results.results(counts, NOW)
    assert {first.kubernetes, second.kubernetes} == {build.VERSIONS[one] for one in build.CLUSTERS.values()}
    assert first.identity != second.identity
