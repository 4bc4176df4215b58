"""Tests that JSONPath templates and custom columns print the same output as kubectl, or are rejected."""

import click
import pytest

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.errors import CommandError
from lwsctl.cli.views.formats import OutputFormat, render_objects

WEB: JSONObject = {
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "web", "labels": {"b/c.d": "dotted", "app": "x"}, "generation": 12},
    "spec": {"parts": ["f1", "f2", "f3"]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "seen": True, "code": 1},
            {"type": "Done", "status": "False", "code": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.metadata.name}", "web"),
        ("x{.kind}y {.metadata.generation}", "xLeaderWorkerSety 12"),
        ("{.metadata.labels}", '{"app":"x","b/c.d":"dotted"}'),
        (r"{.metadata.labels.b/c\.d}", "dotted"),
        (r"{.metadata.labels['b/c\.d']}", "dotted"),
        ("{.metadata['name','generation']}", "web 12"),
        ("{.spec.parts}", '["f1","f2","f3"]'),
        ("{.spec.parts[*]}", "f1 f2 f3"),
        ("{.spec.parts[-1]}{.spec.parts[0:2]}", "f3f1 f2"),
        ("{.spec.parts[::2]}|{.spec.parts[0,2]}|{.spec.parts[1:1]}", "f1 f3|f1 f3|"),
        ("{.none.x}{.metadata.none}{.metadata.name.x}", ""),
        ("{..type}", "Ready Done"),
        ("{.status.conditions[*].code}", "1 2"),
        ('{.status.conditions[?(@.type=="Ready")].status}', "True"),
        ('{.status.conditions[?(@.type != "Ready")].code}', "2"),
        ("{.status.conditions[?(@.seen)].type}{.status.conditions[?(@.seen==true)].type}", "ReadyReady"),
        ("{.status.conditions[?(@.code>1)].type}{.status.conditions[?(@.none==1)].type}", "Done"),
        ('{.spec.parts[?(@=="f2")]}', "f2"),
        (r'{range .status.conditions[*]}{.type}{"\t"}{@.code}{";\n"}{end}', "Ready\t1;\nDone\t2;\n"),
        ("{range .spec.parts[*]}{$}{','}{end}", "f1,f2,f3,"),
    ],
)  # fmt: skip
def test_template_prints_the_same_as_kubectl(template: str, text: str) -> None:
    assert render_objects(f"jsonpath={template}", [WEB], is_one=True) == text


def test_several_objects_are_a_list_or_a_table() -> None:
    other = {"kind": "LeaderWorkerSet", "metadata": {"name": "b"}}
    assert render_objects("jsonpath={.items[*].metadata.name} {.kind}", [WEB, other], is_one=False) == "web b List"
    table = render_objects(
        "custom-columns=NAME:.metadata.name,PARTS:spec.parts[*],G:{.metadata.generation}", [WEB, other], is_one=False
    )
    assert table == "NAME   PARTS      G\nweb    f1,f2,f3   12\nb      <none>     <none>\n"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("jsonpath=.metadata.name", r"the template does not contain an expression in braces\. Use {\.metadata\.name}"),
        ("jsonpath={.a", "is empty or not closed"),
        ("jsonpath={end}", "without {range}"),
        ("jsonpath={range .a[*]}x", "without {end}"),
        ("jsonpath={metadata.name}", "'metadata.name' is invalid"),
        ("jsonpath={len .a}", "'len .a' is invalid"),
        ("jsonpath={.a[x]}", r"\[x\] is invalid"),
        ("jsonpath={.a[]}", r"Use \[\*\] for all"),
        ('jsonpath={.a[?(@.b=="c" && @.d)]}', "Use one comparison"),
        ("jsonpath={.a[?(@.b==c)]}", "'c' is not a path, a number or a quoted string"),
        ("custom-columns=NAME", "use NAME:PATH"),
        ("custom-columns=A:.a,", "use NAME:PATH"),
        ("go-template={{.a}}", "is not one of 'wide', 'jsonpath=TEMPLATE'"),
    ],
)  # fmt: skip
def test_invalid_template_is_a_usage_error(form: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        OutputFormat("wide").convert(form, None, None)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.spec.parts[7]}", "array index out of bounds: the list has 3"),
        ("{.spec.parts[0:9]}", "array index out of bounds"),
        ("{.metadata[0]}", "is not a list"),
        ('{.status.conditions[?(@.code=="1")]}', "cannot compare 1 with '1'"),
    ],
)
def test_template_that_does_not_match_is_an_error_as_in_kubectl(template: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render_objects(f"jsonpath={template}", [WEB], is_one=True)
