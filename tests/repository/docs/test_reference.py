"""Tests that the API reference describes each name and field in the code."""

import re
from typing import Final

import pytest
from docs import codenames, generate_reference
from tests.repository.docs.test_statements import ROOT, rows

from leaderworkerset.api.conditions import CONDITIONS
from leaderworkerset.api.usersettings import SETTINGS

KEYS: Final = ("labels", "settings", "annotations", "gates")
ROLE_SPEC: Final = "spec.roles[].spec"
COMPOSED: Final = re.compile(r"KIND\w+|Group(Complete|DeadlineExceeded)|Scaling(Up|Down)")
"""Events whose reason consists of several parts."""


def described_keys() -> list[str]:
    return [name for table in KEYS for name in generate_reference.full_names(table)]


def test_every_label_and_annotation_is_described_once() -> None:
    assert sorted(described_keys()) == sorted(codenames.keys())


def test_every_variable_is_described() -> None:
    described = {name for entries in generate_reference.names()["variables"].values() for name in entries}
    assert described == codenames.variables()


def test_every_event_is_described() -> None:
    described = {reason for reasons in generate_reference.names()["events"].values() for reason in reasons}
    of_conditions = {"AllGroupsReady", "AllGroupsComplete"}
    assert of_conditions <= {condition.reason for condition in CONDITIONS}
    composed = {reason for reason in described if COMPOSED.fullmatch(reason)}
    assert described - composed == codenames.events() | of_conditions


def test_user_annotations_are_those_of_the_settings() -> None:
    assert set(generate_reference.full_names("settings")) == {setting.annotation for setting in SETTINGS}


def test_every_configuration_field_is_described() -> None:
    paths = [path for path, *_ in generate_reference.settings()]
    assert paths == list(generate_reference.names()["configuration"])


@pytest.mark.parametrize("kind", generate_reference.kinds())
def test_every_field_has_its_line_in_the_reference(kind: str) -> None:
    text = (generate_reference.FOLDER / f"{kind}.md").read_text()
    schema = generate_reference.kinds()[kind]
    paths = {path for path, _ in generate_reference.fields(schema, "", skipped=ROLE_SPEC)}
    shown = re.findall(r'^\| <a id="([^"]+)"></a>.* \| .* \| .* \| .* \| [A-Z].*\.', text, re.MULTILINE)
    assert sorted(shown) == sorted(paths - {"apiVersion", "kind", "metadata"})


@pytest.mark.parametrize("kind", generate_reference.EXPLAINED)
def test_concept_page_of_a_field_names_it(kind: str) -> None:
    schema = generate_reference.kinds()[kind]
    paths = {path for path, _ in generate_reference.fields(schema, "", skipped=ROLE_SPEC)} - {"metadata"}
    texts = {page.name: page.read_text() for page in generate_reference.CONCEPTS.glob("*.md")}
    missing = [
        path
        for path in sorted(paths - {"apiVersion", "kind", "status"})
        if not re.search(
            rf"\b{path.rpartition('.')[2].removesuffix('[]')}\b", texts[generate_reference.concept(kind, path)]
        )
    ]
    assert missing == []


def test_rules_name_existing_fields() -> None:
    schema = generate_reference.kinds()["leaderworkerset-v1"]
    paths = {path for path, _ in generate_reference.fields(schema, "")} | {"metadata.name"}
    assert set(generate_reference.names()["rules"]["leaderworkerset"]) <= paths


def test_reference_has_every_metric_of_the_manager_page() -> None:
    served = {metric.name for metric in codenames.metrics()}
    listed = {
        name
        for first, *_ in rows("docs/reference/manager.md", "## Metrics")
        for name in re.findall(r"`(lws_\w+)`", first)
    }
    assert listed <= served
    assert {metric.name for metric in codenames.metrics() if not metric.help} == set()


def test_metric_of_an_own_counter_has_its_labels() -> None:
    (groups,) = [metric for metric in codenames.metrics() if metric.name == "lws_groups"]
    assert groups[1:3] == ("gauge", ("namespace", "leaderworkerset", "state"))


def test_glossary_has_at_most_forty_sorted_terms() -> None:
    terms = [row[0].strip("*") for row in rows("docs/reference/glossary.md", "# Glossary")]
    assert terms == sorted(terms, key=str.lower)
    assert len(set(terms)) == len(terms) <= 40


def test_generated_pages_are_up_to_date() -> None:
    assert {
        path: path.read_text() for path in ROOT.joinpath("docs/reference/api").iterdir()
    } == generate_reference.pages()
