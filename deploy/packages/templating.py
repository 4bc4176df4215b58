"""Renders objects as Helm templates. Marks in values become expressions, and variants become conditions.

An object is built with marks in place of values of the chart, and rendered to YAML; then the marks are replaced:

| mark | becomes |
|---|---|
| `value("a.b")` | `{{ .Values.a.b }}` |
| `block("a.b")` as the value of a key | the key with the YAML of the value, nothing if it is empty |
| `inline("a.b")` as a key | the entries of the value next to the other keys |
| `items("a.b")` as an item | the items of the value next to the other items |

Conditional parts are the differences between two rendered texts, line by line, so each variant is exactly what the
builders return.
"""

import difflib
import re
from typing import Final

_VALUE: Final = re.compile(r"'?__VALUE__([\w.]+)__'?")
_BLOCK: Final = re.compile(r"^( *)(- )?([\w./-]+): __BLOCK__([\w.]+)__$", re.MULTILINE)
_INLINE: Final = re.compile(r"^( *)(?:__INLINE__([\w.]+)__: ''|- __ITEMS__([\w.]+)__)$", re.MULTILINE)


def value(path: str) -> str:
    """Return the mark of a single value."""
    return f"__VALUE__{path}__"


def block(path: str) -> str:
    """Return the mark of a list or map, as the value of a key."""
    return f"__BLOCK__{path}__"


def inline(path: str) -> dict[str, str]:
    """Return the mark of additional entries in an object."""
    return {f"__INLINE__{path}__": ""}


def items(path: str) -> str:
    """Return the mark of additional items in a list."""
    return f"__ITEMS__{path}__"


def expressions(text: str) -> str:
    r"""Replace the marks of a rendered object.

    >>> print(expressions("spec:\n  replicas: __VALUE__replicaCount__\n  affinity: __BLOCK__affinity__\n"), end="")
    spec:
      replicas: {{ .Values.replicaCount }}
    {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 4 }}
    {{- end }}
    """
    text = _BLOCK.sub(_expand_block, text)
    text = _INLINE.sub(_expand_inline, text)
    return _VALUE.sub(r"{{ .Values.\1 }}", text)


def either(condition: str, holds: str, otherwise: str) -> str:
    r"""Return a template that renders `holds` if a condition is true, and `otherwise` if it is false.

    >>> print(either(".Values.a", "x\ny\n", "x\nz\n"), end="")
    x
    {{- if .Values.a }}
    y
    {{- else }}
    z
    {{- end }}
    """
    old, new = otherwise.splitlines(), holds.splitlines()
    lines: list[str] = []
    for tag, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += old[first:last]
        else:
            lines += _branches(condition, new[start:end], old[first:last])
    return "".join(f"{line}\n" for line in lines)


def only_if(condition: str, text: str) -> str:
    """Return a template that renders the content only if a condition is true."""
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _branches(condition: str, holds: list[str], otherwise: list[str]) -> list[str]:
    if not holds:
        return [f"{{{{- if not {condition} }}}}", *otherwise, "{{- end }}"]
    middle = ["{{- else }}", *otherwise] if otherwise else []
    return [f"{{{{- if {condition} }}}}", *holds, *middle, "{{- end }}"]


def _expand_block(match: "re.Match[str]") -> str:
    indent, dash, key, path = match[1], match[2] or "", match[3], match[4]
    if dash:
        raise ValueError(f"{key}: a block must not be the first key of a list item")
    inner = len(indent) + 2
    return f"{{{{- with .Values.{path} }}}}\n{indent}{key}:\n{' ' * inner}{{{{- toYaml . | nindent {inner} }}}}\n{{{{- end }}}}"


def _expand_inline(match: "re.Match[str]") -> str:
    indent, path = match[1], match[2] or match[3]
    return f"{{{{- with .Values.{path} }}}}\n{indent}{{{{- toYaml . | nindent {len(indent)} }}}}\n{{{{- end }}}}"
