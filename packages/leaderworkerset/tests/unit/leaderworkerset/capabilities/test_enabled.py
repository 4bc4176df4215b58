"""Tests the table of capabilities. Each directory has a row, and direct imports of a directory are counted."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from tests import builders

import leaderworkerset
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.plan import Action, Emit
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities.enabled import ENABLED, EXTENSIONS, GROUPS, SETS, WAKING_GROUPS, Capability
from leaderworkerset.core import decisionevents
from leaderworkerset.core.admission.leaderworkerset import validate_leaderworkerset
from leaderworkerset.core.extensions import UPSTREAM, combine
from leaderworkerset.core.pod.reconcile import reconcile
from leaderworkerset.core.policies.policy import LiveGroup

SOURCE: Final = Path(leaderworkerset.__file__).parent
FOLDERS: Final = sorted(one.parent.name for one in SOURCE.glob("capabilities/*/__init__.py"))
DOCS: Final = Path(__file__).parents[6] / "docs"

MOST_IMPORTS: Final = 20
"""Modules that import the directory of another capability. Each pair counts once. The number may only decrease."""

GREETING: Final = "example.com/greeting"


def greet(group: LiveGroup) -> tuple[Action, ...]:
    """Report the greeting of a LeaderWorkerSet after the final steps of other capabilities."""
    text = group.obj["metadata"].get("annotations", {}).get(GREETING)
    greeting = () if text is None else (Emit(events=(decisionevents.unreadable(group.obj, text, group.leader),)),)
    return (*GROUPS.last(group), *greeting)


def refuse_long(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Reject a greeting with more than five letters."""
    text = lws.metadata.annotations.get(GREETING, "")
    if len(text) > 5:
        yield invalid(f"metadata.annotations.{GREETING}", text, "must have at most 5 letters")


EXAMPLE: Final = Capability(
    name="greeting",
    page="how-to/extend.md",
    settings=(GREETING,),
    errors=(refuse_long,),
)
"""The row of a capability, as docs/how-to/extend.md describes it."""


def importers() -> set[tuple[str, str]]:
    """Return the modules outside a capability that import its directory instead of using the table."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or own == ("capabilities", "enabled.py"):
                continue
            names = (node.module or "", *(f"{node.module}.{one.name}" for one in node.names))
            parts = (name.removeprefix("leaderworkerset.capabilities.").split(".")[0] for name in names)
            found |= {("/".join(own), part) for part in parts if part in FOLDERS and own[:2] != ("capabilities", part)}
    return found


def test_imports_of_capabilities_stay_below_the_limit() -> None:
    found = importers()

    assert len(found) <= MOST_IMPORTS
    assert not [path for path, _ in found if path.startswith(("core/", "api/"))]


def test_each_folder_has_one_row() -> None:
    assert len(ENABLED) == len(FOLDERS) == len({one.name for one in ENABLED})


@pytest.mark.parametrize("one", ENABLED, ids=lambda one: one.name)
def test_each_row_names_its_page_and_settings(one: Capability) -> None:
    known = {text for name, text in vars(labels).items() if name.isupper() and isinstance(text, str)}

    assert (DOCS / one.page).is_file()
    assert set(one.settings) <= known
    page = (DOCS / one.page).read_text()
    assert [setting for setting in one.settings if setting.rpartition("/")[2] not in page] == []


def test_no_setting_belongs_to_two_capabilities() -> None:
    settings = [setting for one in ENABLED for setting in one.settings]

    assert len(settings) == len(set(settings))
    assert set(WAKING_GROUPS) <= set(settings)


def test_every_table_and_call_of_a_hook_is_used() -> None:
    """Each extension point in the upstream decisions is used by at least one capability."""
    for own, upstream in (
        (EXTENSIONS, UPSTREAM),
        (EXTENSIONS.sets, UPSTREAM.sets),
        (EXTENSIONS.groups, UPSTREAM.groups),
    ):
        unused = {name for name in upstream.__struct_fields__ if getattr(own, name) == getattr(upstream, name)}
        assert unused == set()
    declared = {name for name in Capability.__struct_fields__ if any(getattr(one, name) for one in ENABLED)}
    assert declared == set(Capability.__struct_fields__)


def test_example_capability_is_added_and_removed() -> None:
    obj = builders.leaderworkerset_object(metadata={"annotations": {GREETING: "hi"}})
    leader = builders.leader_pod(obj)
    group = builders.live_group(leader=leader, obj=obj, pods=(leader,), revisions=(builders.revision(obj),))
    extended = combine((*ENABLED, EXAMPLE), SETS, replace(GROUPS, last=greet))

    with_it, without = (reconcile(group, extensions=one) for one in (extended, EXTENSIONS))

    added = [action for action in with_it.actions if action not in without.actions]
    assert [event.note for one in added if isinstance(one, Emit) for event in one.events] == ["hi"]
    long = builders.annotated({GREETING: "good morning"})
    assert [error.path for error in validate_leaderworkerset(long, extensions=extended)] == [
        f"metadata.annotations.{GREETING}"
    ]
    assert validate_leaderworkerset(long, extensions=EXTENSIONS) == []


def test_setting_that_decides_about_groups_wakes_them() -> None:
    """Otherwise, a change takes effect only after the next change to each group."""
    deciding = (GROUPS.first, GROUPS.before_evidence, GROUPS.before_deletion, GROUPS.before_restart, GROUPS.restarts)
    folders = {function.__module__.split(".")[-2] for function in (*deciding, *EXTENSIONS.fault_finders)}
    rows = {module.split(".")[-2]: row for row in ENABLED for module in modules_of(row)}

    assert folders <= rows.keys()
    assert [folder for folder in folders if not set(rows[folder].settings) <= set(WAKING_GROUPS)] == []


def modules_of(row: Capability) -> set[str]:
    """Return the modules of the functions in a row."""
    return {function.__module__ for table in (row.errors, row.warnings, row.excuses) for function in table}
