"""Reads sets of fields from clients (`fieldsV1` of an entry of `managedFields`).

In: a decoded value, no deeper than `nesting.MAX_DEPTH`, like all bodies. Out: the set, or `FieldSetError`. Keys and
values inside path elements are JSON texts with the same bound.
"""

import re
from typing import Final

import msgspec

from kuberuntime.manifests import nesting
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON
from localkube.apiserver.patch.fieldset import MEMBER, FieldSet

INDEX: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)

KNOWN: Final = "fkvi"
"""The types of path elements: fields, keys, values, indexes."""


class FieldSetError(ValueError):
    """The value is not a set of fields."""


def parse(sent: JSON) -> FieldSet:
    """Read a set; elements of unknown types are ignored.

    >>> parse({"f:a": {".": {}, "f:b": None}, "x:c": {}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    if sent is None:
        return {}
    if not isinstance(sent, dict):
        raise FieldSetError(f"{render(sent)} is not an object")
    return {element: {} if element == MEMBER else parse(child) for element, child in sent.items() if _is_known(element)}


def _is_known(element: str) -> bool:
    """Return whether the type of the element is known; raise where the element is malformed."""
    if element == MEMBER:
        return True
    mark, colon, text = element.partition(":")
    if len(mark) != 1 or not colon:
        raise FieldSetError(f"{render(element)} is not a path element")
    match mark:
        case "k" if not isinstance(_decode(element, text), dict):
            raise FieldSetError(f"{render(element)} has no keys")
        case "v":
            _decode(element, text)
        case "i" if not INDEX.fullmatch(text):
            raise FieldSetError(f"{render(element)} has no index")
    return mark in KNOWN


def _decode(element: str, text: str) -> JSON:
    try:
        return nesting.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise FieldSetError(f"{render(element)} is not a path element: {error}") from error
