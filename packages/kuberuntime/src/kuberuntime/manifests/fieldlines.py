"""Finds the line numbers of YAML fields for error messages.

Input: text that `yamltext.documents` has accepted. Output: the line number of each key and list element of each
document. A value from an alias or a merge key has the line of the alias.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TypeAlias

import yaml
from msgspec import Struct

from kuberuntime.manifests.yamltext import SafeLoader, decode, key_text

Path: TypeAlias = tuple[str | int, ...]


class _Open(Struct):
    """The path of an incomplete list or mapping, and the key or index of its next value."""

    path: Path
    next: str | int | None

    def next_path(self) -> Path:
        """Return the path of the next value, and advance."""
        path = (*self.path, "" if self.next is None else self.next)
        self.next = self.next + 1 if isinstance(self.next, int) else None
        return path


@lru_cache(maxsize=8)
def field_lines(text: str | bytes) -> list[Mapping[Path, int]]:
    r"""Return the line numbers of all fields before the first error, by document. Lines are counted from 1.

    >>> field_lines("a:\n- b: 1\n---\nc: 2\n")
    [{('a',): 1, ('a', 0): 2, ('a', 0, 'b'): 2}, {('c',): 4}]
    >>> field_lines("a: 1\n---\nb: [\n---\n")
    [{('a',): 1}, {('b',): 3}]
    >>> field_lines("{a: 1}: 2\nb: 3\n")
    [{('',): 1, ('', 'a'): 1, ('b',): 2}]
    """
    documents: list[Mapping[Path, int]] = []
    lines: dict[Path, int] = {}
    stack: list[_Open] = []
    with suppress(yaml.YAMLError, UnicodeEncodeError):
        for event in yaml.parse(decode(text), Loader=SafeLoader):
            match event:
                case yaml.DocumentStartEvent():
                    lines, stack = {}, []
                    documents.append(lines)
                case yaml.CollectionEndEvent():
                    stack.pop()
                case yaml.NodeEvent():
                    _process_event(event, stack, lines)
    return documents


def _process_event(event: yaml.NodeEvent, stack: list[_Open], lines: dict[Path, int]) -> None:
    line = event.start_mark.line + 1 if event.start_mark else 1
    path: Path = ()
    if stack:
        parent = stack[-1]
        if parent.next is None:  # a key, which can be a list or mapping
            parent.next = key_text(event, line) if isinstance(event, yaml.ScalarEvent) else ""
            path = (*parent.path, parent.next)
        else:
            path = parent.next_path()
        lines.setdefault(path, line)
    if isinstance(event, yaml.CollectionStartEvent):
        stack.append(_Open(path, 0 if isinstance(event, yaml.SequenceStartEvent) else None))
