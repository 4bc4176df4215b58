"""Parses numbers in pod labels and annotations. Invalid numbers deny the pod with the error of `strconv`."""

import re

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.policies.policy import DeniedError

_INTEGER = re.compile(r"[+-]?[0-9]+")


def read_label(pod: JSONObject, key: str) -> int:
    """Parse a label. An absent label is equivalent to an empty string, which is not a number."""
    return _parse(meta.labels(pod).get(key, ""))


def read_annotation(pod: JSONObject, key: str) -> int:
    """Parse an annotation. An absent annotation is equivalent to an empty string, which is not a number."""
    return _parse(meta.annotations(pod).get(key, ""))


def _parse(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise DeniedError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    number = decimals.integer(text)
    if number is None:
        raise DeniedError(f'strconv.Atoi: parsing "{text}": value out of range')
    return number
