"""Tests that the benchmark page contains each recorded run, and does not load other files."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from bench import page
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
