"""The values of `-o` that commands share with kubectl: `jsonpath=TEMPLATE` and `custom-columns=NAME:PATH,…`. Pure."""

from collections.abc import Sequence
from typing import Final

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.views import jsonpath, output
from leaderworkerset.cli.views.jsonpath import JSONPathError, Step
from leaderworkerset.views.document import without_managed_fields

TEMPLATES: Final = ("jsonpath", "custom-columns")


class OutputFormat(click.Choice[str]):
    """One of some words, or a template, which is read at once so that its errors are those of the command line."""

    def __init__(self, *words: str) -> None:
        super().__init__([*words, "jsonpath=TEMPLATE", "custom-columns=NAME:PATH,..."])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a word, or a template that can be read."""
        if not is_template(value):
            return super().convert(value, param, ctx)
        word, _, template = value.partition("=")
        try:
            (jsonpath.parse if word == "jsonpath" else columns)(template)
        except JSONPathError as error:
            self.fail(f"{value}: {error}", param, ctx)
        return value


def is_template(form: str | None) -> bool:
    """Return whether a format is a template that is filled in with objects of the API."""
    return form is not None and form.partition("=")[0] in TEMPLATES


def filled(form: str, objects: Sequence[JSONObject], *, is_one: bool) -> str:
    """Return objects of the API in a format: one by itself, several as a List."""
    word, _, template = form.partition("=")
    objects = list(map(without_managed_fields, objects))
    try:
        if word == "custom-columns":
            shown = columns(template)
            rows = [[_cell(jsonpath.select(path, one)) for _, path in shown] for one in objects]
            return "".join(f"{line}\n" for line in output.table([header for header, _ in shown], rows))
        if word == "name":
            return "".join(f"{_kind(one)}/{meta.name(one)}\n" for one in objects)
        whole: JSON = objects[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": objects}
        if word != "jsonpath":
            return f"{output.as_json(whole) if word == 'json' else output.as_yaml(whole)}\n"
        return jsonpath.fill(jsonpath.parse(template), whole)
    except JSONPathError as error:
        raise CommandError(f"-o {form}: {error}") from error


def _kind(obj: JSONObject) -> str:
    """Return the kind with its group, as `kubectl get` accepts it before a name."""
    group, _, _ = obj["apiVersion"].rpartition("/")
    return f"{obj['kind'].lower()}{f'.{group}' if group else ''}"


def columns(template: str) -> list[tuple[str, list[Step]]]:
    """Read the headers and paths of columns."""
    return [_column(words) for words in template.split(",")]


def _cell(found: Sequence[JSON]) -> str:
    return ",".join(map(jsonpath.text, found)) or "<none>"


def _column(words: str) -> tuple[str, list[Step]]:
    """Read one column; as for kubectl, the braces and the first dot of its path may be left out."""
    header, _, path = words.partition(":")
    path = path.strip().removeprefix("{").removesuffix("}")
    if not header or not path:
        raise JSONPathError(f"column {words!r}: write NAME:PATH, as in NAME:.metadata.name")
    return header, jsonpath.path(path if path[0] in ".[$@" else f".{path}")
