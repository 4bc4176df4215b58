"""Compares two objects, and formats the different fields for users.

Input: an object before and after a change. Output: one `FieldChange` for each field, which formats the differences of
long and multi-line values.
"""

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from kuberuntime.objects import patch
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.texts.wording import format_count

FIELDS_SHOWN: Final = 30
"""The maximum number of field lines. Machine-readable output contains all fields."""

LINES_SHOWN: Final = 20
"""The maximum number of lines for the changes in one multi-line value."""

LONGEST_VALUE: Final = 60
CONTEXT: Final = 16
"""The number of characters that are displayed before the first difference of two long values."""

NEWLINE: Final = "\n"


class FieldChange(msgspec.Struct, frozen=True):
    """A changed field of an object. None represents a missing field."""

    path: str
    before: JSON
    after: JSON

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the change. For multi-line values, yield only the changed lines."""
        old, new = _format_value(self.before), _format_value(self.after)
        if "\n" in old and "\n" in new:
            yield f"{self.path}:"
            yield from (f"  {line}" for line in _changed_lines(old, new))
        else:
            yield f"{self.path}: {' -> '.join(_shorten_pair(old, new))}"


def field_changes(old: JSONObject, new: JSONObject) -> Iterator[FieldChange]:
    """Yield the changed fields of the spec, the labels and the annotations. List items are identified by name.

    >>> old, new = ({"spec": {"c": [{"name": "a", "image": image}]}} for image in ("x", "y"))
    >>> [str(change) for change in field_changes(old, new)]
    ['spec.c[a].image: x -> y']
    """
    for part in ("metadata.labels", "metadata.annotations", "spec"):
        yield from _differences(part, _select_part(old, part), _select_part(new, part))


def change_lines(changes: Sequence[FieldChange]) -> Iterator[str]:
    """Yield at most `FIELDS_SHOWN` changed fields."""
    for change in changes[:FIELDS_SHOWN]:
        yield from (f"  {line}" for line in change.lines())
    if len(changes) > FIELDS_SHOWN:
        yield f"  and {format_count(len(changes) - FIELDS_SHOWN, 'more field')}"


def summary(changes: Sequence[FieldChange], *, is_new: bool) -> str:
    """Return a short summary of the change."""
    if is_new:
        return "created"
    return f"{format_count(len(changes), 'field')} would change" if changes else "unchanged"


def _select_part(obj: JSONObject, part: str) -> JSON:
    value: JSON = obj
    for name in part.split("."):
        value = value.get(name) or {} if isinstance(value, dict) else {}
    return value


def _differences(path: str, old: JSON, new: JSON) -> Iterator[FieldChange]:
    before, after = _members(old), _members(new)
    if before is None or after is None:
        if not patch.equal(old, new):
            yield FieldChange(path, old, new)
        return
    for name in {**before, **after}:
        yield from _differences(path + name, before.get(name), after.get(name))


def _members(value: JSON) -> dict[str, JSON] | None:
    """Return the members of an object or list by path suffix, or None for other values."""
    if isinstance(value, dict):
        return {f"[{name}]" if "." in name or "/" in name else f".{name}": inner for name, inner in value.items()}
    if not isinstance(value, list):
        return None
    names = [item.get("name") if isinstance(item, dict) else None for item in value]
    has_names = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return {f"[{names[number] if has_names else number}]": inner for number, inner in enumerate(value)}


def _format_value(value: JSON) -> str:
    plain = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return "nothing" if value is None else plain


def _changed_lines(old: str, new: str) -> Iterator[str]:
    r"""Yield at most `LINES_SHOWN` removed and added lines.

    >>> list(_changed_lines("exec server\n  --port 80\n", "exec server\n  --port 81\n"))
    ['-   --port 80', '+   --port 81']
    """
    ends = (
        []
        if old.endswith("\n") == new.endswith("\n")
        else [f"({'removes' if old.endswith(NEWLINE) else 'adds'} the last newline)"]
    )
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    changed = [f"{line[0]} {line[1:]}" for line in islice(compared, 2, None) if not line.startswith("@@")]
    yield from changed[:LINES_SHOWN]
    if len(changed) > LINES_SHOWN:
        yield f"and {format_count(len(changed) - LINES_SHOWN, 'more line')}"
    yield from ends


def _shorten_pair(old: str, new: str) -> tuple[str, str]:
    """Shorten both strings to `LONGEST_VALUE` characters that include the first difference.

    >>> _shorten_pair("run " + "-a " * 30 + "--len 1", "run " + "-a " * 30 + "--len 2")
    ('…-a -a -a --len 1', '…-a -a -a --len 2')
    """
    pairs = enumerate(zip(old, new, strict=False))
    same = next((at for at, (left, right) in pairs if left != right), min(len(old), len(new)))
    start = max(0, same - CONTEXT) if max(len(old), len(new)) > LONGEST_VALUE and same > CONTEXT else 0
    start = max(start, old.find(" ", start, same) + 1) if start else 0  # start with a complete word
    before, after = (_shorten(text, start) for text in (old, new))
    return before, after


def _shorten(text: str, start: int) -> str:
    end = start + LONGEST_VALUE
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
