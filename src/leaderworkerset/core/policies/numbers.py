"""Numbers in labels and annotations of pods; an invalid one denies the pod, with the error text of Go's `strconv`."""

import re

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.denial import DeniedError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LIMIT = 2**63
_LONGEST = len(str(-_LIMIT))


def read_label(pod: JSONObject, key: str) -> int:
    """Read a label; an absent one is read as the empty text, which is not a number."""
    return _parse(meta.labels(pod).get(key, ""))


def read_annotation(pod: JSONObject, key: str) -> int:
    """Read an annotation; an absent one is read as the empty text, which is not a number."""
    return _parse(meta.annotations(pod).get(key, ""))


def _parse(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise DeniedError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text) if len(text) <= _LONGEST else _LIMIT
    if not -_LIMIT <= number < _LIMIT:
        raise DeniedError(f'strconv.Atoi: parsing "{text}": value out of range')
    return number
