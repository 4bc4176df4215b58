"""Tests the tables of DisaggregatedSets."""

import re

from tests import builders
from tests.unit.lwsctl.model.test_disaggregatedset import part, seen

from lwsctl.cli.views import tables


def squeezed(lines: list[str]) -> list[str]:
    """Return the lines with three spaces between columns, for cells of any length."""
    return [re.sub(" {3,}", "   ", line) for line in lines]


def test_set_table_lists_sets_and_their_parts() -> None:
    shown = seen(part("prefill", 2, ready=1), part("decode", 1))
    assert [line.split("   ") for line in squeezed(tables.set_tables([shown], builders.NOW))] == [
        ["DISAGGREGATEDSET", "READY", "ROLLOUT", "AGE"],
        ["split", "prefill 1/2, decode 1/1", "complete"],
        [""],
        ["split:"],
        ["LEADERWORKERSET", "ROLE", "SLICE", "REVISION", "READY", "DESIRED"],
        ["split-0-new-decode", "decode", "0", "new", "1", "1"],
        ["split-0-new-prefill", "prefill", "0", "new", "1", "2"],
    ]


def test_namespace_column_exists_for_all_namespaces() -> None:
    lines = tables.set_tables([seen(part("decode", 1))], builders.NOW, with_namespace=True)
    assert lines[0].startswith("NAMESPACE   DISAGGREGATEDSET")
    assert lines[1].startswith(f"{builders.NAMESPACE}     split")
    assert f"{builders.NAMESPACE}/split:" in lines


def test_many_sets_have_a_line_each_and_unready_come_first() -> None:
    ready, waits = (seen(part("prefill", 2), part("decode", 1, ready=count)) for count in (1, 0))
    lines = squeezed(tables.set_tables([ready, waits], builders.NOW, is_brief=True))
    assert lines[1:] == ["split   prefill 2/2, decode 0/1   complete", "split   prefill 2/2, decode 1/1   complete"]


def test_empty_list_has_no_table() -> None:
    assert tables.set_tables([], builders.NOW) == []
