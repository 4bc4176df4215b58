"""Detects unrendered template actions, such as those of a Helm chart, in text and in objects. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from kuberuntime.manifests.fieldlines import Path
from kuberuntime.objects.meta import JSON, JSONObject

ACTION: Final = re.compile(r"\{\{.*?(?:\}\}|$)", re.MULTILINE)
HELM: Final = re.compile(r"\{\{[^{}]*?(?:\.(?:Values|Release|Chart|Capabilities|Files)\b|\b(?:include|template)\s\")")
"""The prefix of template actions that are specific to charts. Container arguments may contain other templates."""

CONTENT: Final = {"ConfigMap": ("data",), "Secret": ("data", "stringData")}
"""Fields that may contain templates for use in the container."""

REMEDY: Final = "an unrendered template; render it first, for example with `helm template CHART | lws apply -f -`"


def find_in_text(text: str, error_line: int) -> tuple[int, str] | None:
    r"""Return the line and content of a template action that makes the text invalid YAML, or None if there is none.

    >>> find_in_text("a: 1\nb: {{ .Values.b }}\n", 2), find_in_text("a: '{{ chat }}'\nb: [", 3)
    ((2, '{{ .Values.b }}'), None)
    """
    for number, line in enumerate(text.split("\n")[:error_line], 1):
        if words := _first_action(ACTION if number == error_line else HELM, line):
            return number, words
    return None


def find_in_object(obj: JSONObject) -> tuple[Path, str] | None:
    """Return the path and content of the first chart action in the strings of an object."""
    skipped = CONTENT.get(str(obj.get("kind")), ())
    return next(_actions({name: value for name, value in obj.items() if name not in skipped}, ()), None)


def _actions(node: JSON, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, str):
        if words := _first_action(HELM, node):
            yield path, words
    elif isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _actions(child, (*path, key))


def _first_action(pattern: re.Pattern[str], text: str) -> str:
    """Return the first action in a string that matches the pattern, or an empty string if there is none."""
    begin = pattern.search(text)
    match = ACTION.match(text, begin.start()) if begin else None
    return match[0].strip() if match else ""
