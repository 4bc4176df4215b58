"""Numbers in pod labels and annotations. An invalid number denies the pod, with the error text of Go's `strconv`."""

import re

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.policies.policy import DeniedError

_INTEGER = re.compile(r"[+-]?[0-9]+")


def read_label(pod: JSONObject, key: str) -> int:
    """Read a label. An absent label is read as an empty string, which is not a number."""
    return _parse(meta.labels(pod).get(key, ""))


def read_annotation(pod: JSONObject, key: str) -> int:
    """Read an annotation. An absent annotation is read as an empty string, which is not a number."""
    return _parse(meta.annotations(pod).get(key, ""))


def _parse(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise DeniedError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    number = decimals.integer(text)
    if number is None:
        raise DeniedError(f'strconv.Atoi: parsing "{text}": value out of range')
    return number
