"""The files of the chart, without Helm; what Helm renders of them is tested in tests/packages."""

import json
import re
from functools import cache

import msgspec

from kuberuntime.objects import duration
from leaderworkerset.kinds.managed import MANAGED, managed
from leaderworkerset.manager.config.configuration import GroupRestarts
from leaderworkerset.packaging import chartvalues, helmchart


@cache
def files() -> dict[str, str]:
    """Return the files of the chart, made when a test asks."""
    served = helmchart.Served(MANAGED, managed("auto"), managed("built-in"))
    return helmchart.files(served, {"leaderworkersets.yaml": "definition"})


def test_no_mark_is_left() -> None:
    """R-OP-47: a render that leaves a token behind must fail."""
    assert {name for name, text in files().items() if re.search(r"__[A-Z]+__", text)} == set()


def test_every_value_has_schema_and_default_and_is_used() -> None:
    """R-OP-53: no value without effect but those that are accepted for other charts' sake."""
    schema = json.loads(files()["values.schema.json"])
    templates = "".join(text for name, text in files().items() if name.startswith("templates/"))
    for one in chartvalues.values():
        node = schema
        for level in one.name.split("."):
            node = node["properties"][level]
        assert node["description"] == one.about
        parent = ".".join(one.name.split(".")[:2])
        is_accepted_only = one.name in {"enableDisaggregatedSet", "service.port"}
        assert is_accepted_only or f".Values.{parent}" in templates, one.name


def test_unknown_values_are_refused() -> None:
    schema = json.loads(files()["values.schema.json"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["service"]["properties"]["port"]["enum"] == [9443]


def test_a_section_of_the_configuration_has_every_field_in_its_schema() -> None:
    """A field that is added to the manager's file is a value of the chart at once, and one that it lacks is refused."""
    section = json.loads(files()["values.schema.json"])["properties"]["groupRestarts"]
    assert section["additionalProperties"] is False
    assert section["properties"].keys() == {field.encode_name for field in msgspec.structs.fields(GroupRestarts)}
    pattern = section["properties"]["firstDelay"]["pattern"]
    for text in ("10s", "1h30m", "0", "1.5s"):
        assert re.search(pattern, text)
        duration.parse(text)
    for text in ("10", "", "ten", "-1s"):
        assert not re.search(pattern, text)


def test_conditions_are_closed() -> None:
    for name, text in files().items():
        if name.endswith((".yaml", ".tpl")):
            opened = len(re.findall(r"{{-? (?:if|with|define) ", text))
            assert len(re.findall(r"{{-? end ", text)) == opened, name


def test_definitions_are_installed_by_helm() -> None:
    """R-OP-54."""
    assert files()["crds/leaderworkersets.yaml"] == "definition"
