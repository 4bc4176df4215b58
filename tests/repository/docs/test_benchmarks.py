"""Tests that the benchmark page contains each recorded run, and does not load other files."""

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from bench import capacity, page
from bench.record import Line

RECORDED = sorted(page.RECORDED[0].glob("*.jsonl"))


def test_every_recorded_run_is_shown_and_nothing_is_loaded(tmp_path: Path) -> None:
    page.write(RECORDED, tmp_path / "out" / "page.html")
    text = (tmp_path / "out" / "page.html").read_text()

    assert [file.stem for file in RECORDED if f"<td>{file.stem}<td>" not in text] == []
    assert "created: 100 x 4" in text
    loading: list[str] = []

    class Loads(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            loading.extend(f"{tag} {name}" for name, _ in attrs if name in {"src", "href"})

    Loads().feed(text)
    assert loading == []
    assert "@import" not in text


@pytest.mark.parametrize("measurement", ["writes", "<script>"])
def test_measurement_is_drawn_from_run_to_run(measurement: str, tmp_path: Path) -> None:
    """Three lines of a run are summarized as their median, regardless of the measurement."""
    for day, values in (("2026-01-01", [30, 10, 20]), ("2026-01-02", [10])):
        lines: list[Line] = [{"machine": {"load": [3.5], "revision": "abc"}}]
        lines += [{"measurement": measurement, "phase": "created", "writes": value} for value in values]
        (tmp_path / f"{day}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    text = page.build([page.read(file) for file in sorted(tmp_path.glob("*.jsonl"))])

    assert text.count("<svg") == 1
    assert '<polyline points="5.0,5.0 235.0,18.0"/>' in text
    assert "<title>20: 2026-01-01, load 3.5</title>" in text
    assert "<script>" not in text


@pytest.mark.parametrize(
    ("points", "value", "error"),
    [({1: 3.0, 2: 5.0, 3: 7.0}, 21.0, 0.0), ({1: 1.0, 2: 1.0, 3: 4.0}, 14.0, 7.071)],
)
def test_projection_equals_the_line_with_its_standard_error(
    points: Mapping[int, float], value: float, error: float
) -> None:
    assert capacity.project(points, 10) == pytest.approx((value, error), abs=1e-3)


def test_largest_point_is_compared_with_the_line_of_the_smaller() -> None:
    assert capacity.deviation_of_largest({1: 3.0, 2: 5.0, 4: 18.0}) == pytest.approx(-0.5)
