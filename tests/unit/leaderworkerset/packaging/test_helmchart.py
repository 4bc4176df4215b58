"""The files of the chart, without Helm; what Helm renders of them is tested in tests/packages."""

import json
import re

from leaderworkerset.kinds.managed import MANAGED, managed
from leaderworkerset.packaging import chartvalues, helmchart

FILES = helmchart.files(
    helmchart.Served(MANAGED, managed("auto"), managed("built-in")), {"leaderworkersets.yaml": "definition"}
)


def test_no_mark_is_left() -> None:
    """R-OP-47: a render that leaves a token behind must fail."""
    assert {name for name, text in FILES.items() if re.search(r"__[A-Z]+__", text)} == set()


def test_every_value_has_schema_and_default_and_is_used() -> None:
    """R-OP-53: no value without effect but those that are accepted for other charts' sake."""
    schema = json.loads(FILES["values.schema.json"])
    templates = "".join(text for name, text in FILES.items() if name.startswith("templates/"))
    for one in chartvalues.values():
        node = schema
        for level in one.name.split("."):
            node = node["properties"][level]
        assert node["description"] == one.about
        parent = ".".join(one.name.split(".")[:2])
        is_accepted_only = one.name in {"enableDisaggregatedSet", "service.port"}
        assert is_accepted_only or f".Values.{parent}" in templates, one.name


def test_unknown_values_are_refused() -> None:
    schema = json.loads(FILES["values.schema.json"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["service"]["properties"]["port"]["enum"] == [9443]


def test_conditions_are_closed() -> None:
    for name, text in FILES.items():
        if name.endswith((".yaml", ".tpl")):
            opened = len(re.findall(r"{{-? (?:if|with|define) ", text))
            assert len(re.findall(r"{{-? end ", text)) == opened, name


def test_definitions_are_installed_by_helm() -> None:
    """R-OP-54."""
    assert FILES["crds/leaderworkersets.yaml"] == "definition"
