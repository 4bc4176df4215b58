"""Tests that YAML strings are written as blocks, and that lines are not wrapped."""

from lwsctl.cli.views import diffs, output

SCRIPT = "set -u\nexec server \\\n  --max-len {} \\\n  --ranks 2\n"


def test_script_is_a_yaml_block() -> None:
    assert output.as_yaml({"args": ["a\nb"]}) == "args:\n- |-\n  a\n  b"


def test_diff_shows_the_changed_line_of_a_script() -> None:
    lines = diffs.unified_diff({"args": [SCRIPT.format(1)]}, {"args": [SCRIPT.format(2)]}, ("old", "new"))
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-    --max-len 1 \\", "+    --max-len 2 \\"]


def test_long_line_is_not_wrapped() -> None:
    assert output.as_yaml({"args": "word " * 100 + "end"}).count("\n") == 0
