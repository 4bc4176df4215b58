"""Converts YAML to JSON values according to the rules of Kubernetes, with limits. Only `fieldlines` also parses YAML.

Input: text, or bytes in UTF-8. Output: documents with their first line, or a `YamlError` with the line and the
problem.

Values are built from libyaml's events, one at a time and without recursion, so that the limits apply before memory
grows: `MAX_DEPTH` levels, and `MAX_ALIASED` characters and nodes from aliases. Scalars follow YAML 1.1 as in Go: dates,
`12:30` and `=` are strings, and `1e3` is a number. A value that JSON cannot represent is an error. A number or boolean
as a key is converted to its JSON text (sigs.k8s.io/yaml, `convertToJSONableObject`).
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Final, TypeAlias

import yaml
from msgspec import Struct, field

from kuberuntime.manifests.nesting import MAX_DEPTH
from kuberuntime.objects.meta import JSON

try:  # PyYAML built without the libyaml headers has only its slower Python scanner
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]  # the same methods

__all__ = ["SafeDumper", "SafeLoader"]


MAX_ALIASED: Final = 3 * 2**20
"""The maximum number of characters and of nodes added by aliases. The size of a request is at most 3 MiB."""

MAX_TAG_DIRECTIVES: Final = 64
"""The maximum number of `%TAG` directives, because libyaml compares each directive with all others."""

TAG_DIRECTIVE: Final = re.compile(r"(?:^|[\ufeff\n\r\x85\u2028\u2029])%TAG")

MERGE: Final = "<<"
CORE: Final = "tag:yaml.org,2002:"
STRINGS: Final = (CORE + "str", CORE + "timestamp")
TYPES: Final = {CORE + "int": int, CORE + "float": float, CORE + "bool": bool, CORE + "null": type(None)}

WORDS: Final[dict[str, bool | None]] = {
    **{form: True for word in ("true", "yes", "on") for form in (word, word.title(), word.upper())},
    **{form: False for word in ("false", "no", "off") for form in (word, word.title(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
INTEGER: Final = re.compile(r"[-+]?(0b[01]+|0x[0-9a-fA-F]+|0o?[0-7]+|0|[1-9][0-9]*)")
FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NUMERIC: Final = frozenset("-+.0123456789")
LONGEST_INTEGER: Final = 70
"""The maximum number of characters of an integer. Binary 64-bit integers are shorter."""

Scalar: TypeAlias = str | int | float | bool | None


class YamlError(ValueError):
    """The YAML is invalid or exceeds a limit. `line` starts at 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class Document(Struct, frozen=True):
    """The value and the first line of a document."""

    value: JSON
    line: int


def load(text: str | bytes, *, unique_keys: bool = False) -> JSON:
    """Return the value of the single document, or None if there are no documents.

    >>> load("{a: 1, on: [yes, 1e3, 12:30]}")
    {'a': 1, 'true': [True, 1000.0, '12:30']}
    """
    first: Document | None = None
    for document in documents(text, unique_keys=unique_keys):
        if first is not None:
            raise YamlError(document.line, "expected one document, but found several")
        first = document
    return first.value if first else None


def documents(text: str | bytes, *, unique_keys: bool = False) -> Iterator[Document]:
    r"""Yield the documents. With `unique_keys`, duplicate keys are errors. Otherwise the last value applies.

    >>> [document.line for document in documents("a: 1\n---\nb: 2\n")]
    [1, 3]
    """
    characters = decode(text)
    _check_directives(characters)
    builder = _Builder(unique_keys)
    try:
        for event in yaml.parse(characters, Loader=SafeLoader):
            if builder.process(event):
                yield Document(builder.value, builder.line)
                builder = _Builder(unique_keys)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, error.problem or error.context or "invalid") from error
    except yaml.reader.ReaderError as error:  # a character that YAML does not allow
        line = characters[: error.position].count("\n") + 1
        raise YamlError(line, f"{error.reason} at position {error.position}") from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise YamlError(1, f"invalid text: {error.reason}") from error


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar. Raise `ValueError` for a number that JSON does not support.

    >>> resolve("0x1f"), resolve("017"), resolve("1.5"), resolve("~"), resolve("1Gi")
    (31, 15, 1.5, None, '1Gi')
    """
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMERIC:
        return text
    if INTEGER.fullmatch(text) and (number := _integer(text)) is not None:
        return number
    if FLOAT.fullmatch(text):
        value = float(text)
        return value if isfinite(value) else text
    if NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is a number that JSON cannot represent")
    return text


def _integer(text: str) -> int | None:
    """Return the integer, or None if it exceeds 64 bits."""
    if len(text) > LONGEST_INTEGER:
        return None
    digits = text.lstrip("+-")
    bases = {"0b": 2, "0x": 16, "0o": 8}
    base = bases.get(digits[:2]) or (8 if len(digits) > 1 and digits[0] == "0" else 10)
    number = int(text, base)
    return number if -(2**63) <= number < 2**64 else None


def decode(text: str | bytes) -> str:
    """Decode UTF-8 text. Raise an error for invalid bytes."""
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise YamlError(line, f"invalid UTF-8 at byte {error.start}") from error


def _check_directives(text: str) -> None:
    count = len(TAG_DIRECTIVE.findall(text))
    if count > MAX_TAG_DIRECTIVES:
        raise YamlError(1, f"contains {count} %TAG directives, but at most {MAX_TAG_DIRECTIVES} are allowed")


class _Open(Struct):
    """An incomplete list or mapping with its current contents."""

    value: JSON
    anchor: str | None
    size_before: int
    key: str | None = None
    is_merge: bool = False
    merges: list[JSON] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None


class _Anchored(Struct, frozen=True):
    """A value with an anchor, and its size in characters and nodes."""

    value: JSON
    size: int


class _Builder:
    def __init__(self, unique_keys: bool) -> None:  # noqa: FBT001 - private
        self.value: JSON = None
        self.line = 1
        self._unique_keys = unique_keys
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._size = 0
        self._aliased = 0
        self._is_started = False

    def process(self, event: yaml.Event) -> bool:
        """Process the next event. Return whether the document is complete."""
        line = event.start_mark.line + 1 if event.start_mark else 1
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(line)
            case yaml.AliasEvent():
                self._insert_alias(event.anchor or "", line)
            case _:
                return isinstance(event, yaml.DocumentEndEvent)
        return False

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        if not event.value.isascii():
            event.value.encode()  # PyYAML's Python scanner accepts halves of surrogate pairs, which are errors
        value, size = _parse_scalar(event, line), 1 + len(event.value)
        self._size += size
        self._add_value(value, line, is_merge=event.value == MERGE and _is_plain(event))
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, size)

    def _begin(self, event: yaml.CollectionStartEvent, line: int) -> None:
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        if event.tag not in {None, "!", CORE + kind}:
            raise YamlError(line, _unknown_tag(event.tag))
        if len(self._open) >= MAX_DEPTH:
            raise YamlError(line, f"nested more than {MAX_DEPTH} levels deep")
        if self._open and self._open[-1].awaits_key:
            raise YamlError(
                line, f"a {'mapping' if kind == 'map' else 'list'} cannot be a key, because JSON keys must be strings"
            )
        if event.anchor:
            self._anchors.pop(event.anchor, None)
        self._record_line(line)
        self._open.append(_Open({} if kind == "map" else [], event.anchor, self._size))
        self._size += 1

    def _end(self, line: int) -> None:
        node = self._open.pop()
        value = _apply_merge_keys(node) if node.merges else node.value
        if node.anchor:
            self._anchors[node.anchor] = _Anchored(value, self._size - node.size_before)
        self._add_value(value, line)

    def _insert_alias(self, name: str, line: int) -> None:
        anchored = self._anchors.get(name)
        if anchored is None:
            is_open = any(node.anchor == name for node in self._open)
            why = "is an alias inside its own anchor" if is_open else "has no preceding anchor"
            raise YamlError(line, f"alias *{name} {why}")
        self._size += anchored.size
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED:
            raise YamlError(
                line, f"alias *{name}: aliases must not repeat more than {MAX_ALIASED} characters and nodes"
            )
        self._add_value(anchored.value, line)

    def _add_value(self, value: JSON, line: int, *, is_merge: bool = False) -> None:
        """Add a complete value to the innermost open list or mapping, or use it as the value of the document."""
        self._record_line(line)
        if not self._open:
            self.value = value
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            self._put_key(parent, value, line, is_merge=is_merge)
        elif parent.is_merge:
            parent.merges += _merge_sources(value, line)
            parent.key, parent.is_merge = None, False
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _put_key(self, parent: _Open, value: JSON, line: int, *, is_merge: bool) -> None:
        parent.key, parent.is_merge = _key(value, line), is_merge
        if is_merge:
            return
        if self._unique_keys and parent.key in parent.lines:
            raise YamlError(line, f"key {parent.key!r} is already defined in line {parent.lines[parent.key]}")
        parent.lines[parent.key] = line

    def _record_line(self, line: int) -> None:
        if not self._is_started:
            self.line, self._is_started = line, True


def _parse_scalar(event: yaml.ScalarEvent, line: int) -> Scalar:
    try:
        if event.tag not in {None, "!"}:
            return _parse_tagged(event.value, event.tag)
        return resolve(event.value) if _is_plain(event) else event.value
    except ValueError as error:
        raise YamlError(line, str(error)) from error


def _parse_tagged(text: str, tag: str) -> Scalar:
    if tag in STRINGS:
        return text
    if tag not in TYPES:
        raise ValueError(_unknown_tag(tag))
    value = resolve(text)
    if tag == CORE + "float" and type(value) is int:
        return float(value)
    if type(value) is not TYPES[tag]:
        raise ValueError(f"{text!r} is not a valid value for the tag {_short(tag)}")
    return value


def _is_plain(event: yaml.ScalarEvent) -> bool:
    """Return whether a scalar has neither quotes nor a tag."""
    return bool(event.implicit[0] and not event.style)


def _key(value: JSON, line: int) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return short if float(short := f"{value:g}") == value else repr(value)
        case _:
            what = "null" if value is None else "a mapping or a list"
            raise YamlError(line, f"{what} cannot be a key, because JSON keys must be strings. Put it in quotes")


def key_text(event: yaml.ScalarEvent, line: int) -> str:
    """Return the JSON key of a scalar."""
    return _key(_parse_scalar(event, line), line)


def _merge_sources(value: JSON, line: int) -> list[JSON]:
    """Return the mappings that a merge key references, in ascending order of precedence."""
    sources = value[::-1] if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise YamlError(line, f"{MERGE} must have a mapping or a list of mappings")
    return sources


def _apply_merge_keys(mapping: _Open) -> JSON:
    merged: JSON = {}
    for source in (*mapping.merges, mapping.value):
        merged.update(source)
    return merged


def _unknown_tag(tag: str) -> str:
    return f"tag {_short(tag)} is not supported in JSON. Remove it"


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(CORE)}" if tag.startswith(CORE) else tag
