"""Tests that sixty common manifest errors are rejected or cause warnings with the field and the line."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.disaggregated import disaggregatedset_object, role
from tests.manifesterrors import (
    MAIN,
    MANIFEST,
    NAMED,
    REFUSED,
    REMOVED,
    WARNED,
    changed,
    line_in,
    line_of,
    text_of,
)

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.doctor.findings import Level
from lwsctl.cli.doctor.manifestvalidation import validate_manifests
from lwsctl.cli.reading import manifests


def texts(obj: JSONObject, level: Level) -> list[str]:
    return [
        result.text for result in validate_manifests(manifests.parse(text_of(obj), "web.yaml")) if result.level is level
    ]


def assert_named(obj: JSONObject, path: str, level: Level, text: str) -> None:
    (message,) = [message for message in texts(obj, level) if text in message][:1]
    assert message.split(": ")[0] == f"web.yaml:{line_of(obj, NAMED.get(text, path))}", message


def test_there_are_more_than_sixty_errors() -> None:
    assert len(REFUSED) + len(WARNED) >= 60
    assert texts(MANIFEST, Level.ERROR) + texts(MANIFEST, Level.WARNING) == []


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_an_invalid_field_is_rejected(path: str, value: Any, text: str) -> None:
    assert_named(changed(path, value), path, Level.ERROR, text)


@pytest.mark.parametrize(("path", "value", "text"), WARNED)
def test_a_field_with_which_no_pod_runs_causes_a_warning(path: str, value: Any, text: str) -> None:
    obj = changed(path, value)
    assert texts(obj, Level.ERROR) == []
    assert_named(obj, path, Level.WARNING, text)


def in_a_list(obj: JSONObject) -> tuple[str, str]:
    """Return an object as the second item of a YAML list, and the path of the item."""
    return text_of({"apiVersion": "v1", "kind": "List", "items": [MANIFEST, obj]}), "items.1"


def in_json(obj: JSONObject) -> tuple[str, str]:
    """Return a list of objects in JSON, and the path of the object."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [obj]}, indent=2), "items.0"


@pytest.mark.parametrize("form", [in_a_list, in_json])
def test_errors_of_objects_in_lists_have_their_fields_and_lines(form: Callable[[JSONObject], tuple[str, str]]) -> None:
    wrong = []
    for path, value, text in [*REFUSED, *WARNED]:
        whole, item = form(changed(path, value))
        results = [
            result.text for result in validate_manifests(manifests.parse(whole, "web.yaml")) if text in result.text
        ]
        expected = f"web.yaml:{line_in(whole, f'{item}.{NAMED.get(text, path)}')}: leaderworkerset/"
        if not results or not results[0].startswith(expected):
            wrong.append((path, value, expected, results))
    assert wrong == []


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
    assert warnings[-1].endswith("workerTemplate: 5 additional values are invalid")
