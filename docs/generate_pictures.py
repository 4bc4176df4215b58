"""Writes the pictures of the concept pages for light and dark themes. With `--check`, only compares them.

The rollout picture is drawn from the forecast of `lws plan`, so it cannot differ from the controller.

python -m docs.generate_pictures [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from docs import generatedpage

from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from lwsctl.rollout import forecast
from lwsctl.rollout.forecast import RolloutState

FOLDER: Final = Path(__file__).parent / "concepts" / "pictures"
WIDTH: Final = 760

STYLE: Final = """\
  <style>
    text { font: 14px system-ui, sans-serif; fill: #24292f; text-anchor: middle; dominant-baseline: middle; }
    .left { text-anchor: start; } .small { font-size: 12px; } .strong { font-weight: 600; }
    rect { fill: #f6f8fa; stroke: #8c959f; rx: 6px; } line { stroke: #8c959f; marker-end: url(#tip); } path { fill: #8c959f; }
    .area { fill: none; stroke-dasharray: 5 4; } .leader { fill: #ddf4ff; stroke: #0969da; } .new { fill: #dafbe1; stroke: #1a7f37; }
    .busy { fill: #fff8c5; stroke: #9a6700; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } rect { fill: #21262d; stroke: #6e7681; } .area { fill: none; }
      .leader { fill: #0c2d6b; stroke: #58a6ff; } .new { fill: #04260f; stroke: #3fb950; } .busy { fill: #341a00; stroke: #d29922; }
    }
  </style>
  <defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
"""


def picture(height: int, description: str, *parts: str) -> str:
    """Return a complete picture. Screen readers use the description."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
    return (
        head
        + f"  <title>{escape(description)}</title>\n{STYLE}"
        + "".join(f"  {part}\n" for part in parts)
        + "</svg>\n"
    )


def box(at: tuple[int, int], size: tuple[int, int], text: str, kind: str = "", note: str = "") -> str:
    """Return a box with a label, and a second line in a small font."""
    (x, y), (width, height) = at, size
    middle, center = x + width // 2, y + height // 2
    words = f'<text x="{middle}" y="{center - (8 if note else 0)}">{escape(text)}</text>' if text else ""
    more = f'<text class="small" x="{middle}" y="{center + 10}">{escape(note)}</text>' if note else ""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>{words}{more}'


def label(x: int, y: int, text: str, kind: str = "left") -> str:
    """Return a label without a box."""
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return an arrow."""
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}"/>'


def anatomy() -> str:
    """Draw the objects of a LeaderWorkerSet with two groups of three pods."""
    parts = [
        box((300, 10), (160, 44), "LeaderWorkerSet", "strong", "web, replicas 2, size 3"),
        box((300, 90), (160, 44), "StatefulSet web", "", "creates the leaders"),
        box((20, 90), (190, 44), "Service web", "", "headless: names of pods"),
        box((550, 90), (190, 44), "ControllerRevision", "", "the template"),
        arrow((380, 54), (380, 88)),
        arrow((300, 45), (200, 88)),
        arrow((460, 45), (560, 88)),
    ]
    for group, left in ((0, 20), (1, 390)):
        parts += [
            box((left, 166), (350, 200), "", "area"),
            label(left + 12, 182, f"group {group}", "left small"),
            box((left + 20, 196), (130, 48), f"web-{group}", "leader", "leader, index 0"),
            box((left + 190, 196), (140, 48), f"StatefulSet web-{group}", "", "creates the workers"),
            arrow((left + 150, 220), (left + 188, 220)),
            arrow((380, 134), (left + 85, 194)),
        ]
        for worker in (1, 2):
            x = left + 20 + (worker - 1) * 170
            parts += [
                box((x, 296), (140, 48), f"web-{group}-{worker}", "", f"worker, index {worker}"),
                arrow((left + 260, 244), (x + 70, 294)),
            ]
    return picture(
        380, "A LeaderWorkerSet has a StatefulSet of leaders, and each leader has a StatefulSet of workers", *parts
    )


STRATEGIES: Final = (
    ("maxUnavailable: 1", Budget(replicas=4, partition=0, unavailable=1, surge=0)),
    ("maxUnavailable: 2", Budget(replicas=4, partition=0, unavailable=2, surge=0)),
    ("maxUnavailable: 0, maxSurge: 1", Budget(replicas=4, partition=0, unavailable=0, surge=1)),
    ("maxUnavailable: 1, partition: 2", Budget(replicas=4, partition=2, unavailable=1, surge=0)),
)


def waves(limits: Budget) -> list[tuple[int, ...]]:
    """Return the groups that a rollout of four ready groups updates in each step."""
    everything = (1 << limits.replicas) - 1
    current = StatefulSetProgress(limits.replicas, 0, str(limits.replicas))
    world = RolloutState(current, members=everything, ready=everything, updated=0)
    return [wave.groups for wave in forecast.forecast(limits, world, is_new_revision=True).waves]


def rollout() -> str:
    """Draw the steps of a rollout for several strategies."""
    parts: list[str] = []
    top = 10
    for title, limits in STRATEGIES:
        parts.append(label(10, top + 10, title, "left strong"))
        parts += _steps(waves(limits), top + 26, limits)
        top += 26 + 34 * (limits.replicas + limits.surge) + 18
    legend = top + 4
    for number, (kind, text) in enumerate((("", "previous template"), ("busy", "updating"), ("new", "new template"))):
        parts.append(box((10 + 240 * number, legend), (24, 18), "", kind))
        parts.append(label(42 + 240 * number, legend + 10, text))
    return picture(legend + 30, "The groups that a rollout updates in each step", *parts)


def _steps(steps: Sequence[tuple[int, ...]], top: int, limits: Budget) -> Iterator[str]:
    """Yield one row for each group, and one column for each step."""
    width = 660 // (2 * len(steps) + 1)
    for group in range(limits.replicas + limits.surge):
        y = top + 34 * group
        yield label(10, y + 14, f"group {group}", "left small")
        updated = next((index for index, groups in enumerate(steps) if group in groups), None)
        last = len(steps) - 1
        for column in range(2 * len(steps) + 1):
            is_extra = group >= limits.replicas
            if is_extra and (updated is None or column < 2 * updated + 1 or column > 2 * last):
                continue
            kind = ""
            if updated is not None and column > 2 * updated:
                kind = "busy" if column == 2 * updated + 1 else "new"
            yield box((80 + column * width, y), (width - 4, 28), "", kind)


def topology() -> str:
    """Draw exclusive placement of groups, and of subgroups, on racks."""
    parts: list[str] = []
    rows = (
        (
            "exclusive-topology: each group has a separate rack",
            (("web-0", "web-0-1", "web-0-2", "web-0-3"), ("web-1", "web-1-1", "web-1-2", "web-1-3")),
        ),
        (
            "subgroup-exclusive-topology, subGroupSize: 2: each subgroup has a separate rack",
            (("web-0", "web-0-1"), ("web-0-2", "web-0-3")),
        ),
    )
    for row, (title, racks) in enumerate(rows):
        top = 10 + row * 160
        parts.append(label(20, top + 8, title, "left strong"))
        for rack, pods in enumerate(racks):
            left = 20 + rack * 370
            parts += [
                box((left, top + 26), (350, 110), "", "area"),
                label(left + 12, top + 42, f"rack {rack}", "left small"),
            ]
            for place, pod in enumerate(pods):
                kind = "leader" if pod.count("-") == 1 else ""
                parts.append(box((left + 12 + place % 4 * 84, top + 66), (76, 44), pod, kind))
    return picture(330, "Groups and subgroups on racks", *parts)


def subgroups() -> str:
    """Draw a group of five pods for both types of subgroups."""
    parts: list[str] = []
    for row, (title, size, first) in enumerate(
        (("LeaderWorker, subGroupSize: 2, size: 4", 4, 0), ("LeaderExcluded, subGroupSize: 2, size: 5", 5, 1))
    ):
        top = 10 + row * 130
        parts.append(label(20, top + 8, title, "left strong"))
        for start in range(first, size, 2):
            left = 20 + start * 140
            parts += [
                box((left, top + 24), (270, 90), "", "area"),
                label(left + 12, top + 38, f"subgroup {(start - first) // 2}", "left small"),
            ]
        for index in range(size):
            pod, kind = ("web-0", "leader") if not index else (f"web-0-{index}", "")
            parts.append(box((30 + index * 140, top + 54), (110, 44), pod, kind))
    return picture(270, "The subgroups of a group", *parts)


PICTURES: Final = {"anatomy": anatomy, "rollout": rollout, "topology": topology, "subgroups": subgroups}


def pages() -> dict[Path, str]:
    """Return all pictures by file name."""
    return {FOLDER / f"{name}.svg": draw() for name, draw in PICTURES.items()}


if __name__ == "__main__":
    sys.exit(generatedpage.write("the script", pages, FOLDER))
