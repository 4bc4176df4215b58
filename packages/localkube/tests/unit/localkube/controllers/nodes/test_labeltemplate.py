"""Tests the labels of simulated nodes, which are computed from the node number."""

import pytest

from localkube.controllers.nodes.nodeoptions import parse_label


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("zone=a", ["a", "a", "a"]),
        ("rack=r{i//2}", ["r0", "r0", "r1"]),
        ("rack=r{ i % 2 + 1 }", ["r1", "r2", "r1"]),
        ("block={i*10-(-3)}-{i}", ["3-0", "13-1", "23-2"]),
        ("example.com/host=", ["", "", ""]),
    ],
)
def test_template_is_evaluated_for_each_node(text: str, values: list[str]) -> None:
    template = parse_label(text)
    assert [template.value(index) for index in range(3)] == values


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("rack", "must have the form KEY=VALUE"),
        ("a b=c", "name part must consist of"),
        ("rack=r{i", "a brace is not opened or not closed"),
        ("rack=r{}", "is not an expression"),
        ("rack=r{i+}", "is not an expression"),
        ("rack=r{j}", "'j' is not allowed"),
        ("rack=r{i/2}", "'i / 2' is not allowed"),
        ("rack=r{i**9}", "'i ** 9' is not allowed"),
        ("rack=r{__import__('os')}", "is not allowed"),
        ("rack=r{True}", "'True' is not allowed"),
        ("rack=r{1.5}", "'1.5' is not allowed"),
        ("rack=r{i//0}", "division by zero for node 0"),
        ("rack=r{i%0}", "division by zero for node 0"),
        ("rack=-{i}-", "a valid label must be"),
        (f"rack={{{'i+' * 60}i}}", "more than 100 characters"),
    ],
)
def test_template_errors_name_the_label(text: str, error: str) -> None:
    with pytest.raises(ValueError, match="Invalid value") as caught:
        parse_label(text)
    assert error in str(caught.value)


def test_failing_template_names_the_node() -> None:
    with pytest.raises(ValueError, match="division by zero for node 2"):
        parse_label("rack=r{4//(2-i)}").value(2)
