"""Sixty errors that people make in manifests: each is refused, or causes a warning, with its field and its line."""

from typing import Any

import pytest
from tests.disaggregated import disaggregatedset_object, role
from tests.manifesterrors import MAIN, MANIFEST, NAMED, REFUSED, REMOVED, WARNED, changed, line_of, text_of

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.doctor.findings import Level
from leaderworkerset.cli.doctor.validity import validity
from leaderworkerset.cli.reading import manifests


def texts(obj: JSONObject, level: Level) -> list[str]:
    return [result.text for result in validity(manifests.parse(text_of(obj), "web.yaml")) if result.level is level]


def assert_named(obj: JSONObject, path: str, level: Level, text: str) -> None:
    (message,) = [message for message in texts(obj, level) if text in message][:1]
    assert message.split(": ")[0] == f"web.yaml:{line_of(obj, NAMED.get(text, path))}", message


def test_there_are_more_than_sixty_errors() -> None:
    assert len(REFUSED) + len(WARNED) >= 60
    assert texts(MANIFEST, Level.ERROR) + texts(MANIFEST, Level.WARNING) == []


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_an_invalid_field_is_refused(path: str, value: Any, text: str) -> None:
    assert_named(changed(path, value), path, Level.ERROR, text)


@pytest.mark.parametrize(("path", "value", "text"), WARNED)
def test_a_field_with_which_no_pod_runs_causes_a_warning(path: str, value: Any, text: str) -> None:
    obj = changed(path, value)
    assert texts(obj, Level.ERROR) == []
    assert_named(obj, path, Level.WARNING, text)


def test_the_template_of_a_role_causes_a_warning() -> None:
    template = changed(f"{MAIN}.image", REMOVED)["spec"]["leaderWorkerTemplate"]
    obj = disaggregatedset_object([role("prefill"), role("decode")])
    obj["spec"]["roles"][1]["spec"]["leaderWorkerTemplate"] = template
    (warning,) = texts(obj, Level.WARNING)
    path = "spec.roles.1.spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.image"
    field = "spec.roles[1].spec: spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].image: Required value"
    assert warning.startswith(f"web.yaml:{line_of(obj, path)}: disaggregatedset/")
    assert field in warning


def test_only_the_first_values_of_a_template_are_named() -> None:
    many = changed(f"{MAIN}.env", [{"name": f"A{number}", "value": "1", "valueFrom": {}} for number in range(15)])
    warnings = texts(many, Level.WARNING)
    assert len(warnings) == 11
    assert warnings[-1].endswith("workerTemplate: 5 more values are refused")
