"""Tests that all text has sufficient contrast with each possible background."""

import re

import pytest

from lwsctl.dashboard.staticfiles import files

LEAST = 4.5
TEXTS = ("text", "quiet", "link", "ready", "starting", "problem", "missing")
GROUNDS = ("ground", "raised", "mark")
PAIRS = [
    *[(text, ground) for text in TEXTS for ground in GROUNDS],
    ("ready", "good"),
    ("starting", "slow"),
    ("on-bad", "bad"),
]


def luminance(color: str) -> float:
    """Return the relative luminance of a color, as WCAG defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_on_every_ground(scheme: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", files()["style.css"], re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light + (dark if scheme == "dark" else "")))
    low = {}
    for text, ground in PAIRS:
        lighter, darker = sorted((luminance(colors[text]), luminance(colors[ground])), reverse=True)
        low[text, ground] = (lighter + 0.05) / (darker + 0.05)
    assert {pair: round(value, 2) for pair, value in low.items() if value < LEAST} == {}
