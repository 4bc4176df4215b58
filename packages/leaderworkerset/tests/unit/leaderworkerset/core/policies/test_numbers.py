"""Tests the numbers in pod labels and annotations (R-ADM-1)."""

import pytest

from leaderworkerset.core.policies.numbers import read_annotation, read_label
from leaderworkerset.core.policies.policy import DeniedError


@pytest.mark.parametrize("text", ["0", "-1", "+7", "007", str(2**63 - 1), str(-(2**63))])
def test_numbers_are_parsed(text: str) -> None:
    pod = {"metadata": {"labels": {"a": text}, "annotations": {"a": text}}}
    assert read_label(pod, "a") == read_annotation(pod, "a") == int(text)


@pytest.mark.parametrize("text", ["", "x", "1.5", " 1", "1_000", "\u0661"])
def test_invalid_number_denies_the_pod(text: str) -> None:
    with pytest.raises(DeniedError, match="invalid syntax"):
        read_label({"metadata": {"labels": {"a": text}}}, "a")


def test_missing_number_denies_the_pod() -> None:
    with pytest.raises(DeniedError, match='parsing "": invalid syntax'):
        read_annotation({}, "a")


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "1" * 21, "9" * 5000])
def test_number_beyond_64_bits_denies_the_pod(text: str) -> None:
    with pytest.raises(DeniedError, match="value out of range"):
        read_label({"metadata": {"labels": {"a": text}}}, "a")
