"""No parser of users' texts is quadratic: a text that is hostile to it costs at most about twice where it is twice as long.

Regular expressions and copies run in C, so what counts here is processor time.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

import pytest
from tests.property.growth import work

from kuberuntime.access import urls
from kuberuntime.cache import projection
from kuberuntime.objects import duration, intstr, names, ordinals, quantity, selectors
from kuberuntime.objects.gotypes import scalars
from localkube.apiserver.custom import patterns
from localkube.apiserver.tables import jsonpath
from localkube.controllers.statefulset import identity
from localkube.kubelet.container import images
from localkube.kubelet.spec import environment, scripts

MOST = 3.0
"""What twice the text may cost in processor time, which is not exact; the square would be 4."""

ENOUGH = 0.02
"""Seconds that do not matter, whatever they grew from."""

LENGTHS = (20_000, 40_000)
ATTEMPTS = 4

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
    "image": images.untagged,
    "JSON path": jsonpath.parse,
    "path of a field": projection.parse,
    "schema pattern": patterns.compile_pattern,
    "address with password": urls.redacted,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_twice_the_text_takes_at_most_about_twice_the_time(name: str) -> None:
    grown = {}
    for piece in PIECES:
        for end in ENDS:
            texts = [piece * (length // len(piece)) + end for length in LENGTHS]
            if (ratio := growth(PARSERS[name], *texts)) > MOST:
                grown[piece, end] = ratio
    assert not grown


def growth(parse: Callable[[str], object], text: str, longer: str) -> float:
    """Return by how much the time grows, 0 where it does not matter; measured again where it is too much."""
    ratio = 0.0
    for _ in range(ATTEMPTS):
        once, twice = (work.seconds(partial(attempt, parse, one), runs=1) for one in (text, longer))
        ratio = 0.0 if twice < ENOUGH else twice / once
        if ratio <= MOST:
            break
    return ratio


def attempt(parse: Callable[[str], object], text: str) -> None:
    with suppress(ValueError):
        parse(text)


@pytest.mark.slow
def test_what_is_quadratic_is_found() -> None:
    """As the pattern by which durations were once read, of three numbers in place of two: the cube stands out anywhere."""
    ambiguous = re.compile(r"(\d+\.?\d*\.?\d*)h")
    assert growth(ambiguous.match, "1" * 300, "1" * 600) > MOST
