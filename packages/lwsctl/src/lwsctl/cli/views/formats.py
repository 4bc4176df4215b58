"""Parses the values of `-o` that kubectl also has: `jsonpath=TEMPLATE` and `custom-columns=NAME:PATH,…`. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.texts import jsonpath
from kuberuntime.texts.jsonpath import JSONPathError, Step
from lwsctl.cli.errors import CommandError
from lwsctl.cli.views import output
from lwsctl.views.document import without_managed_fields

Command = TypeVar("Command", bound=Callable[..., Any])

TEMPLATES: Final = ("jsonpath", "custom-columns")
OBJECTS: Final = ("json", "yaml", "name")


class OutputFormat(click.Choice[str]):
    """A parameter type for a format name or a template. Templates are parsed immediately, to report usage errors."""

    def __init__(self, *text: str) -> None:
        super().__init__([*text, "jsonpath=TEMPLATE", "custom-columns=NAME:PATH,..."])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a format name, or a valid template."""
        if not is_template(value):
            return super().convert(value, param, ctx)
        word, _, template = value.partition("=")
        try:
            (jsonpath.parse if word == "jsonpath" else columns)(template)
        except JSONPathError as error:
            self.fail(f"{value}: {error}", param, ctx)
        return value


def output_option(help_text: str, *text: str) -> Callable[[Command], Command]:
    """Return the `-o` option of a command that prints API objects. Its value is passed as `form`."""
    return click.option("-o", "--output", "form", type=OutputFormat(*(text or OBJECTS)), help=help_text)


def is_template(form: str | None) -> bool:
    """Return whether a format is a template for API objects."""
    return form is not None and form.partition("=")[0] in TEMPLATES


def render_objects(form: str, objects: Sequence[JSONObject], *, is_one: bool, managed_fields: bool = False) -> str:
    """Return API objects in a format. If there are several objects, they are returned as a List."""
    word, _, template = form.partition("=")
    objects = objects if managed_fields else list(map(without_managed_fields, objects))
    try:
        if word == "custom-columns":
            fields = columns(template)
            rows = [
                [(",".join(map(jsonpath.format_result, jsonpath.select(path, obj))) or "<none>") for _, path in fields]
                for obj in objects
            ]
            return "".join(f"{line}\n" for line in output.table([header for header, _ in fields], rows))
        if word == "name":
            return "".join(f"{title(obj['apiVersion'], obj['kind'], meta.name(obj))}\n" for obj in objects)
        document: JSON = objects[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": objects}
        if word != "jsonpath":
            return f"{output.as_json(document) if word == 'json' else output.as_yaml(document)}\n"
        return jsonpath.evaluate(jsonpath.parse(template), document)
    except JSONPathError as error:
        raise CommandError(f"-o {form}: {error}") from error


def title(api_version: str, kind: str, name: str) -> str:
    """Return a name with kind and group as prefix, which `kubectl get` accepts.

    >>> title("apps/v1", "Deployment", "web"), title("v1", "Pod", "web-0")
    ('deployment.apps/web', 'pod/web-0')
    """
    group, _, _ = api_version.rpartition("/")
    return f"{kind.lower()}{f'.{group}' if group else ''}/{name}"


def columns(template: str) -> list[tuple[str, list[Step]]]:
    """Parse the column headers and paths."""
    return [_column(words) for words in template.split(",")]


def _column(text: str) -> tuple[str, list[Step]]:
    """Parse one column. As in kubectl, the braces and the leading dot of the path are optional."""
    header, _, path = text.partition(":")
    path = jsonpath.normalize(path)
    if not header or not path:
        raise JSONPathError(f"column {text!r}: use NAME:PATH, such as NAME:.metadata.name")
    return header, jsonpath.parse_path(path)
