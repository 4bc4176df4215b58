"""Records `lws run` for the front page, as lines of a real run with their times, and as an animated SVG.

A run on a busy machine is refused. The picture plays slower than the run, at reading pace, in a loop.

python docs/record_run.py             run the example, write docs/recording/run.txt and run.svg
python docs/record_run.py --render    write run.svg from the run.txt that is there
"""
# ruff: noqa: INP001, T201 - a script of its own, which talks

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).parents[1]
TEXT: Final = ROOT / "docs" / "recording" / "run.txt"
PICTURE: Final = TEXT.with_suffix(".svg")

COMMAND: Final = "lws run -f examples/allreduce/lws.yaml --image allreduce=examples/allreduce --until done"

COLUMNS: Final = 100
ROWS: Final = 24
WIDTH: Final = 8.4
HEIGHT: Final = 18
MARGIN: Final = 16
BAR: Final = 28
HOLD: Final = 1.0
"""The time in seconds for which only the command is displayed, before its output."""

SLOWEST: Final = 4.0
"""The maximum duration of a recorded run in seconds. An idle machine needs one to two seconds."""

READABLE: Final = 0.2
"""The minimum time in seconds between two lines in the picture."""

PAUSE: Final = 0.8
"""The maximum time in seconds between two lines in the picture, so that it does not appear to be stopped."""

REST: Final = 5.0
"""The time in seconds for which the last screen is displayed before the recording restarts."""

COLORS: Final = ("#7ee787", "#79c0ff", "#ffa657", "#d2a8ff", "#ff7b72", "#f2cc60", "#56d4dd", "#ff9bce")
"""The colors of the ranks in the example."""

RANK: Final = re.compile(r"(\d+)/(\d+) ")


class Line(NamedTuple):
    """A line of the run, and its time in seconds since the start."""

    seconds: float
    text: str


def record() -> list[Line]:
    """Run the example, and return its output."""
    begin = time.monotonic()
    words = [sys.executable, "-m", "lwsctl.cli", *COMMAND.split()[1:]]
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    ) as process:
        lines = [Line(round(time.monotonic() - begin, 2), text.rstrip("\n")) for text in process.stdout or ()]
    if process.returncode:
        raise SystemExit("\n".join(line.text for line in lines) + f"\nthe run ended with {process.returncode}")
    refuse_slow(lines)
    return lines


def refuse_slow(lines: Sequence[Line]) -> None:
    """Reject a run whose duration depends mainly on the load of the machine."""
    if lines[-1].seconds > SLOWEST:
        raise SystemExit(
            f"the run took {lines[-1].seconds:g} s, more than {SLOWEST:g}: record when the machine is quiet"
        )


def paced(lines: Sequence[Line]) -> list[Line]:
    """Return lines with the times at which the picture displays them.

    >>> paced([Line(0.5, "a"), Line(0.5, "b"), Line(3.5, "c")])
    [Line(seconds=1.5, text='a'), Line(seconds=1.7, text='b'), Line(seconds=2.5, text='c')]
    """
    gaps = [
        line.seconds - before for line, before in zip(lines, [0.0, *(line.seconds for line in lines)], strict=False)
    ]
    moments = accumulate((min(max(gap, READABLE), PAUSE) for gap in gaps), initial=HOLD)
    return [Line(round(at, 2), line.text) for at, line in zip(islice(moments, 1, None), lines, strict=True)]


def shape(text: str) -> str:
    """Return a line without the parts that vary between runs: numbers, and temporary states of ranks.

    >>> shape("allreduce group 0: 1 of 4 ranks ready (2 Missing, 1 Pending)")
    'allreduce group N: N of N ranks ready'
    """
    return re.sub(r"\d+", "N", re.sub(r" \(\d+ .*$|; .*$", "", text))


def shapes(lines: Sequence[Line]) -> set[str]:
    """Return the types of lines in a run, without notes about missing features on this machine."""
    return {shape(line.text) for line in lines if not line.text.startswith("Note: ")}


def dump(lines: Sequence[Line]) -> str:
    """Return lines in the form in which they are stored."""
    return "".join(f"{line.seconds:.2f}\t{line.text}\n" for line in lines)


def load(text: str) -> list[Line]:
    r"""Parse stored lines.

    >>> load("0.50\tstarting\n")
    [Line(seconds=0.5, text='starting')]
    """
    parts = (line.partition("\t") for line in text.splitlines())
    return [Line(float(seconds), words) for seconds, _, words in parts]


def render(lines: Sequence[Line]) -> str:
    """Return the SVG that displays lines in a loop. With reduced motion, it displays the last screen."""
    screen_lines = [Line(0.0, f"$ {COMMAND}"), *paced(lines)]
    end = screen_lines[-1].seconds + REST
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN + BAR
    font = 'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" role="img" {font}>',
            f"<title>{escape(COMMAND)}</title>",
            f"<style>{_style(screen_lines, end)}</style>",
            f'<rect width="{width:g}" height="{height}" rx="8" fill="#0d1117"/>',
            *(f'<circle cx="{18 + 18 * n}" cy="16" r="5" fill="#30363d"/>' for n in range(3)),
            f'<clipPath id="screen"><rect y="{BAR}" width="{width:g}" height="{height - BAR - MARGIN // 2}"/></clipPath>',
            '<g clip-path="url(#screen)"><g class="scroll">',
            *(_text(number, line) for number, line in enumerate(screen_lines)),
            "</g></g>",
            "</svg>\n",
        ]
    )


def _text(number: int, line: Line) -> str:
    rank = RANK.match(line.text)
    color = COLORS[(int(rank[1]) * 4 + int(rank[2])) % len(COLORS)] if rank else "#e6edf3"
    y = BAR + MARGIN + HEIGHT * (number + 0.75)
    words = escape(line.text if len(line.text) <= COLUMNS else f"{line.text[: COLUMNS - 1]}…")
    return (
        f'<text class="line" x="{MARGIN}" y="{y:g}" fill="{color}" xml:space="preserve" '
        f'style="animation-name:l{number}">{words}</text>'
    )


def _style(screen_lines: Sequence[Line], end: float) -> str:
    """Return the animations. Lines appear at their times, and the page scrolls when the screen is full."""
    last = max(len(screen_lines) - ROWS, 0) * HEIGHT
    lines = (
        f"@keyframes l{number}{{0%{{opacity:0}}{100 * line.seconds / end:.2f}%{{opacity:1}}}}"
        for number, line in enumerate(screen_lines)
    )
    moves = [
        f"{100 * line.seconds / end:.2f}%{{transform:translateY(-{(number + 1 - ROWS) * HEIGHT}px)}}"
        for number, line in enumerate(screen_lines)
        if number + 1 > ROWS
    ]
    return (
        f"{''.join(lines)}@keyframes scroll{{0%{{transform:none}}{''.join(moves)}}}"
        f".line{{animation:{end:.2f}s step-end infinite}}"
        f".scroll{{animation:scroll {end:.2f}s step-end infinite;transform:translateY(-{last}px)}}"
        "@media (prefers-reduced-motion:reduce){.line,.scroll{animation:none!important}}"
    )


def main() -> None:
    """Write the recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="only draw the stored lines again")
    if not parser.parse_args().render:
        TEXT.write_text(dump(record()))
    PICTURE.write_text(render(load(TEXT.read_text())))
    print(f"{PICTURE.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
