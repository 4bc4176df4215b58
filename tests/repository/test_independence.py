"""Tests that code, data and messages of the runtime and the embedded cluster do not mention the product."""

import re
from typing import Final

import pytest
from testkit.repository import sources

PRODUCT: Final = re.compile(r"lws|leader-?worker-?set", re.IGNORECASE)

ALLOWED: Final = {
    "localkube/wellknown.py": {"embedded.leaderworkerset.x-k8s.io": "state directories of before have labels of it"},
}
"""Permitted mentions of the product, by file and with the reason."""


def named(package: str) -> dict[str, list[str]]:
    """Return the lines in a package that mention the product, by file."""
    found: dict[str, list[str]] = {}
    for path in sorted((sources(package) / package).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(sources(package)).as_posix()
            lines = [f"{name}: {line}" for line in path.read_text().splitlines() if says(name, line)]
            found |= {name: lines} if lines or PRODUCT.search(name) else {}
    return found


def says(file: str, line: str) -> bool:
    """Return whether a line mentions the product without permission."""
    for words in ALLOWED.get(file, {}):
        line = line.replace(words, "")
    return PRODUCT.search(line) is not None


@pytest.mark.parametrize("package", ["kuberuntime", "localkube"])
def test_lower_packages_do_not_mention_the_product(package: str) -> None:
    assert not named(package)


def test_allowed_mentions_exist() -> None:
    for file, texts in ALLOWED.items():
        source = (sources("localkube") / file).read_text()
        assert all(text in source for text in texts), file


@pytest.mark.parametrize("line", ["lws_requests", "a LeaderWorkerSet", "leader-worker-set", "LWS"])
def test_mention_of_the_product_is_detected(line: str) -> None:
    assert says("kuberuntime/any.py", line)
