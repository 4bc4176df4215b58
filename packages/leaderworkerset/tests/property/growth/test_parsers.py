"""Tests that no parser of user input is quadratic. Long hostile strings are parsed or rejected in linear time.

Regular expressions and copies run in C, where lines do not count. So a text is so long that what is linear takes
milliseconds, and the square takes minutes.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest
from testkit.work import ends_within

from kuberuntime.access import urls
from kuberuntime.cache import projection
from kuberuntime.objects import duration, intstr, names, ordinals, quantity, selectors
from kuberuntime.objects.gotypes import scalars
from kuberuntime.texts import jsonpath
from localkube.apiserver.custom import keywords
from localkube.controllers.statefulset import identity
from localkube.kubelet.container import images
from localkube.kubelet.spec import environment, scripts

LENGTH = 100_000
LIMIT = 5.0
"""The maximum CPU time for one string in seconds: a hundred times the time of the slowest parser."""

PIECES = ("1", "1.", "a", "a-", "a=b,", "a in (b),", " ", "$(", "$$", "(", "[", "-", ".", "1h", "'", "/", "a ")
ENDS = ("", "!", ")")

PARSERS: dict[str, Callable[[str], object]] = {
    "duration": duration.parse,
    "label selector": selectors.parse_labels,
    "field selector": selectors.parse_fields,
    "quantity": quantity.parse,
    "qualified name": names.qualified_name,
    "subdomain": names.dns_1123_subdomain,
    "name with ordinal": ordinals.split,
    "name of a pod": identity.parse_pod_name,
    "moment": partial(scalars.decode, datetime),
    "percentage": intstr.is_percent,
    "variables in a text": partial(environment.expand, variables={}),
    "functions of a script": scripts.FUNCTION.findall,
    "image": images.without_tag,
    "JSON path": jsonpath.parse_path,
    "path of a field": projection.parse,
    "schema pattern": lambda text: keywords.compile_pattern(text[:10_000]),
    "address with password": urls.redact,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_long_hostile_text_is_parsed_or_rejected_in_time(name: str) -> None:
    texts = (piece * (LENGTH // len(piece)) + end for piece in PIECES for end in ENDS)
    assert [f"{text[:10]}…{text[-1]}" for text in texts if not ends_within(LIMIT, partial(PARSERS[name], text))] == []


def test_quadratic_pattern_is_detected() -> None:
    """This pattern was used for durations in an earlier version."""
    ambiguous = re.compile(r"(\d+\.?\d*)h")
    assert not ends_within(0.2, partial(ambiguous.match, "1" * LENGTH))
