"""Tests the numeric suffixes of names."""

from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.objects.ordinals import ranges


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_name_the_first_and_count_omitted_numbers(numbers: set[int]) -> None:
    text = ranges(numbers, most=6)
    assert text.split(",")[0].split("-")[0] == str(min(numbers))
    assert len(text) < 60
    if "…" in text:
        assert text.endswith(f"({len(numbers)})")
    else:
        pairs = [[int(end) for end in part.split("-")] for part in text.split(",")]
        assert {one for pair in pairs for one in range(pair[0], pair[-1] + 1)} == numbers
