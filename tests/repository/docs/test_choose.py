"""Tests that the comparison with other projects matches this project's code."""

import re
from typing import Final

import pytest
from docs import generate_choose
from docs.generate_choose import Feature
from tests.repository.docs.test_statements import ROOT, rows, text_of

from leaderworkerset.api import labels

CHOOSE: Final = "docs/explanation/choose.md"


def has_command(words: str) -> bool:
    """Return whether `lws` has this command."""
    return f"## lws {words}" in text_of("docs/reference/cli.md").splitlines()


def test_every_setting_and_new_field_is_compared_once() -> None:
    """Settings without a row are listed in `NOT_COMPARED`."""
    assert sorted(generate_choose.compared()) == sorted(generate_choose.to_compare())


def test_page_equals_the_generated_comparison() -> None:
    assert generate_choose.page() == text_of(CHOOSE)


@pytest.mark.parametrize("feature", generate_choose.FEATURES, ids=lambda feature: feature.name)
def test_claimed_feature_exists(feature: Feature) -> None:
    claims = bool(feature.settings or feature.fields or feature.command)
    assert feature.ours or not claims
    assert not feature.command or has_command(feature.command)
    pages = re.findall(r"\(\.\./(how-to/[\w-]+\.md)\)", feature.ours)
    names = [setting.removeprefix(labels.PREFIX) for setting in feature.settings]
    assert all(name in text_of(f"docs/{page}") for page in pages for name in names)


def test_metrics_are_counted_like_the_reference() -> None:
    listed = {
        name
        for first, *_ in rows("docs/reference/manager.md", "## Metrics")
        for name in re.findall(r"`(lws_[a-z_]+)`", first)
    }
    defined = {
        name
        for path in (ROOT / "packages").glob("*/src/**/*.py")
        for name in re.findall(r'"(lws_[a-z_]+)"', path.read_text())
    }
    assert {name.removesuffix("_total") for name in listed} == {name.removesuffix("_total") for name in defined}
    assert generate_choose.metrics() == len(listed)
