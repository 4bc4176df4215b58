"""Formats a storm report as a single HTML file without scripts or external resources. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lwsctl.cli.storms import report as reports
from lwsctl.cli.storms.report import StormReport
from lwsctl.dashboard.markup import Safe, html_document, join, tag

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""The content security policy of the page, which permits only the inline style."""

STYLE: Final = Safe("""
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8886; }
td { overflow-wrap: anywhere; }
.times td:last-child { width: 65%; padding: 0; }
svg { display: block; width: 100%; height: 1.2rem; background: #8882; }
.fault { fill: #8a5a00; } .rank { fill: #b3131f; } .probe { fill: #0b4fa8; }
""")

LEAST: Final = 0.4
"""The minimum width of a bar in hundredths of the duration, so that short events are visible."""


class Span(NamedTuple):
    """An event of the storm, with its time in seconds since the start and its description."""

    begin: float
    end: float
    words: str


class Row(NamedTuple):
    """A row of the timeline. `kind` determines its color."""

    kind: str
    name: str
    spans: tuple[Span, ...]


def page(report: StormReport) -> str:
    """Return the complete HTML document."""
    title = "Storm passed" if report.is_successful else "Storm failed"
    head = [tag("meta", http_equiv="Content-Security-Policy", content=POLICY), tag("style", STYLE)]
    body = tag(
        "body",
        tag("h1", title),
        [tag("p", line) for line in reports.lines(report)],
        tag("h2", "Timeline"),
        _timeline(report),
        tag("h2", "Faults"),
        _table(
            ("After", "Fault", "Error"),
            ((f"{deed.time:.1f} s", str(deed.step), deed.error) for deed in report.steps),
        ),
        tag("h2", "Effects on ranks"),
        _table(("After", "Rank", "What", "Why"), _rank_changes(report)),
    )
    return f"{html_document(title, head, body)}\n"


def timeline_rows(report: StormReport) -> Iterator[Row]:
    """Yield the timeline rows, which are faults, unready ranks, and requests without a response."""
    for deed in report.steps:
        if not deed.error:
            yield Row("fault", str(deed.step), (Span(deed.time, deed.time + deed.step.seconds, str(deed.step)),))
    for rank, spans in report.effects.unready_periods(_last_event_time(report)).items():
        yield Row("rank", rank, tuple(Span(*span, f"{rank} was not ready") for span in spans))
    if report.probe is not None:
        outages = tuple(Span(*outage, "no response") for outage in report.probe.outages)
        yield Row("probe", "requests", outages)


def _last_event_time(report: StormReport) -> float:
    """Return the time of the last event in seconds since the start of the storm."""
    faults = (deed.time + deed.step.seconds for deed in report.steps)
    outages = (end for _, end in report.probe.outages) if report.probe else ()
    return max((*faults, *(sighting.at for sighting in report.effects.changes), *outages), default=0.0)


def _timeline(report: StormReport) -> Safe:
    duration = max(_last_event_time(report), 1.0)
    lines = [tag("tr", tag("td", row.name), tag("td", _row_bars(row, duration))) for row in timeline_rows(report)]
    scale = tag("tr", tag("td", ""), tag("td", f"0 s to {duration:.1f} s"))
    return tag("table", scale, lines, class_="times")


def _row_bars(row: Row, duration: float) -> Safe:
    words = ", ".join(f"{span.begin:.1f} s to {span.end:.1f} s" for span in row.spans) or "never"
    bars = [
        tag(
            "rect",
            tag("title", f"{span.words}: {span.begin:.1f} s to {span.end:.1f} s"),
            x=f"{100 * span.begin / duration:.2f}%",
            width=f"{max(100 * (span.end - span.begin) / duration, LEAST):.2f}%",
            height="100%",
            class_=row.kind,
        )
        for span in row.spans
    ]
    return tag("svg", bars, role="img", aria_label=f"{row.name}: {words}")


def _rank_changes(report: StormReport) -> Iterator[tuple[str, ...]]:
    seen = report.effects.changes
    return (
        (f"{sighting.at:.1f} s", sighting.rank, reports.WORDS[sighting.change], sighting.reason) for sighting in seen
    )


def _table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> Safe:
    rows = [tag("tr", [tag("td", cell) for cell in line]) for line in lines]
    if not rows:
        return tag("p", "None.")
    return tag("table", tag("tr", [tag("th", name, scope="col") for name in header]), join(rows))
