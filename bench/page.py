"""Builds one plain HTML page with line charts of all recorded runs, without external resources.

    python -m bench.everything --draw [FILE.jsonl ...] [--write build/benchmarks.html]

Without files: those of docs/reference/benchmarks and of build/benchmarks, where `bench.everything` keeps its runs.
Their names begin with the day. A dot is the median of a run; its title has the value, the run, and the load of the
machine.
"""

import html
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.record import LABELS, Line, is_number, medians

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDED: Final = (ROOT / "docs" / "reference" / "benchmarks", ROOT / "build" / "benchmarks")
PAGE: Final = ROOT / "build" / "benchmarks.html"
WIDTH, HEIGHT, MARGIN = 240, 36, 5
"""The size of a drawing in pixels, and its margins."""

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color-scheme: light dark }
table { border-collapse: collapse; width: 100% } td, th { padding: .15em .6em; text-align: left; border-bottom: 1px solid #8884 }
td.number { text-align: right; font-variant-numeric: tabular-nums } svg { display: block; color: #2a6fbb }
polyline { fill: none; stroke: currentColor; stroke-width: 1.5 } circle { fill: currentColor }
"""


@dataclass(frozen=True)
class Run:
    """The lines of one file. `name` starts with the date of the run."""

    name: str
    machine: Line
    medians: Sequence[Line]

    def __str__(self) -> str:
        load = f", load {self.machine['load'][0]}" if self.machine.get("load") else ""
        return f"{self.name}{load}"


def read(file: Path) -> Run:
    """Read the lines of one run, as `bench.everything` and `bench.record` write them."""
    lines: list[Line] = [json.loads(text) for text in file.read_text().splitlines()]
    machine: Line = next((line["machine"] for line in lines if "machine" in line), {})
    return Run(file.stem, machine, medians(line for line in lines if "measurement" in line))


def series(runs: Iterable[Run]) -> Mapping[str, Mapping[str, list[tuple[Run, float]]]]:
    """Return the medians by measurement and number, in the order of the runs."""
    by_title: dict[str, dict[str, list[tuple[Run, float]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for line in run.medians:
            title = ", ".join(str(line[label]) for label in LABELS if label in line)
            for name, value in line.items():
                if is_number(value) and name != "runs":
                    by_title[title][name].append((run, value))
    return by_title


def draw(points: Sequence[tuple[Run, float]]) -> str:
    """Return an SVG chart of the values, from 0 to the maximum, from left to right."""
    most = max(abs(value) for _, value in points) or 1
    step = (WIDTH - 2 * MARGIN) / max(len(points) - 1, 1)
    places = [
        (round(MARGIN + number * step, 1), round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * max(value, 0) / most, 1))
        for number, (_, value) in enumerate(points)
    ]
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="3"><title>{html.escape(f"{value:g}: {run}")}</title></circle>'
        for (x, y), (run, value) in zip(places, points, strict=True)
    )
    return f'<svg width="{WIDTH}" height="{HEIGHT}" aria-hidden="true"><polyline points="{line}"/>{dots}</svg>'


def build(runs: Sequence[Run]) -> str:
    """Return the page of these runs, oldest first."""
    tables = "".join(
        f"<h2>{html.escape(title)}</h2><table><tr><th>metric<th>first<th>last<th>history</tr>"
        + "".join(
            f'<tr><td>{html.escape(name)}<td class="number">{points[0][1]:g}<td class="number">{points[-1][1]:g}'
            f"<td>{draw(points)}</tr>"
            for name, points in numbers.items()
        )
        + "</table>"
        for title, numbers in series(runs).items()
    )
    machines = "".join(
        f"<tr><td>{html.escape(run.name)}<td>{html.escape(str(run.machine.get('revision', '')))}"
        f"<td>{html.escape(', '.join(f'{name} {value}' for name, value in run.machine.items() if name != 'revision'))}</tr>"
        for run in runs
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks</title>'
        f"<style>{STYLE}</style><h1>Benchmarks</h1>"
        "<p>Medians of recorded runs, oldest first. You can compare counts and memory between runs. Durations depend on the "
        "machine and its load, so compare them only within a run.</p>"
        f"{tables}<h2>The runs</h2><table><tr><th>run<th>revision<th>machine</tr>{machines}</table></html>\n"
    )


def write(files: Sequence[Path] = (), page: Path = PAGE) -> None:
    """Write the page of these files, or of all recorded files."""
    paths = files or [file for folder in RECORDED for file in folder.glob("*.jsonl")]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(build([read(file) for file in sorted(paths, key=lambda file: file.name)]))
