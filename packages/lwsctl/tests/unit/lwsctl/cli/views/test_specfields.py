"""Tests that `lws describe` shows each spec field and each annotation that users set."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testkit.repository import ROOT
from tests.builders import leaderworkerset_object

from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.api.usersettings import SETTINGS, Setting
from lwsctl.cli.views import description, specfields
from lwsctl.cli.views.description import Described
from lwsctl.model import leaderworkerset as sets
from lwsctl.views.selection import Selection

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MARK = "7654321"


def paths(struct: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each scalar in a spec outside pod templates and claims, and a value with the marker."""
    for name, field in TYPES.fields(struct).items():
        path = f"{prefix}{name}"
        kind = field.type.removeprefix("[]")
        if kind in {"PodTemplateSpec", "PersistentVolumeClaim"}:
            continue
        if field.shape == "struct":
            yield from paths(kind, f"{path}.")
        elif field.shape == "list":
            yield from ((inner, value) for inner, value in paths(kind, f"{path}[]."))
        else:
            yield path, int(MARK) if kind.startswith("int") else MARK


def with_value(path: str, value: Any) -> Any:
    """Return a spec that sets only this path."""
    for name in reversed(path.split(".")):
        value = {name.removesuffix("[]"): [value] if name.endswith("[]") else value}
    return value


def described(spec: dict[str, Any], annotations: dict[str, str]) -> list[str]:
    obj = leaderworkerset_object(metadata={"annotations": annotations})
    shown = Described(selection=Selection("web"), view=sets.view(obj | {"spec": spec}, []))
    return description.lines(shown, NOW)


FIELDS = dict(paths(specfields.ROOT))


@pytest.mark.parametrize("path", FIELDS)
def test_every_field_of_a_spec_is_described(path: str) -> None:
    assert any(MARK in line for line in described(with_value(path, FIELDS[path]), {}))


def test_titles_belong_to_existing_fields() -> None:
    every = {path for struct, prefix in ((specfields.ROOT, ""),) for path in _below(struct, prefix)}
    assert {*specfields.TITLES, *specfields.ELSEWHERE, *specfields.WITHOUT_SCHEMA} <= every


def _below(struct: str, prefix: str) -> Iterator[str]:
    for name, field in TYPES.fields(struct).items():
        yield f"{prefix}{name}"
        if field.shape == "struct" and field.type != "PodTemplateSpec":
            yield from _below(field.type, f"{prefix}{name}.")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_described_and_has_a_page(setting: Setting) -> None:
    lines = described({}, {setting.annotation: MARK})
    assert [line.split()[:2] for line in lines if MARK in line] == [[setting.name, MARK]]
    assert setting.name in Path(ROOT / "docs" / setting.page).read_text()


def test_claims_are_described_by_their_names() -> None:
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "cache"}}]}
    assert ("Claims", "data, cache") in specfields.facts({"leaderWorkerTemplate": claims})
