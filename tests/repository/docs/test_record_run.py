"""Tests that the recording on the front page is generated from recorded lines, which are stored next to it."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from docs import record_run
from docs.record_run import COMMAND, PICTURE, ROWS, TEXT, Line, dump, load, paced, render, shape, shapes

LINES = [Line(0.5, "starting"), Line(1.25, "0/1 <rank> & more"), *(Line(2.0, f"1/0 {n}") for n in range(ROWS))]


def test_picture_equals_the_recorded_lines() -> None:
    assert PICTURE.read_text() == render(load(TEXT.read_text())), "make recording, or docs/record_run.py --render"


def test_recorded_lines_survive_a_round_trip() -> None:
    assert load(dump(LINES)) == LINES
    assert load(TEXT.read_text())[-1].text == "8 ranks in 2 groups exited with code 0"


def test_slow_recording_is_rejected() -> None:
    record_run.refuse_slow([Line(3.9, "ready")])
    with pytest.raises(SystemExit, match=r"the run took 20.3 s, more than 4: record when the machine is quiet"):
        record_run.refuse_slow([Line(0.5, "starting"), Line(20.3, "ready")])


def test_animation_has_readable_pauses_and_repeats() -> None:
    shown = paced([Line(8.3, "late"), *(Line(20.0, "many at once") for _ in range(40))])
    gaps = [after.seconds - before.seconds for before, after in pairwise([Line(record_run.HOLD, ""), *shown])]
    assert all(record_run.READABLE - 0.01 <= gap <= record_run.PAUSE + 0.01 for gap in gaps)
    assert "step-end infinite" in render(LINES)


def test_every_line_is_drawn_at_its_moment() -> None:
    root = ET.fromstring(render(LINES))
    drawn = [element for element in root.iter() if element.tag.endswith("text")]
    assert [element.text for element in drawn[:3]] == [f"$ {COMMAND}", "starting", "0/1 <rank> & more"]
    assert drawn[1].attrib["style"] == "animation-name:l1"
    shown = paced(LINES)
    moment = 100 * shown[0].seconds / (shown[-1].seconds + record_run.REST)
    assert f"@keyframes l1{{0%{{opacity:0}}{moment:.2f}%{{opacity:1}}}}" in render(LINES)
    assert drawn[2].attrib["fill"] != drawn[3].attrib["fill"]


def test_page_scrolls_by_the_overflow() -> None:
    assert f"translateY(-{(len(LINES) + 1 - ROWS) * record_run.HEIGHT}px)" in render(LINES)
    assert "@keyframes scroll{0%{transform:none}}" in render(LINES[:2])


def test_shape_omits_numbers_that_differ_between_runs() -> None:
    assert shape("0/1 round 2: 4096 sums over 4 ranks are right, total 8186834328") == (
        shape("1/3 round 0: 4096 sums over 4 ranks are right, total 1")
    )
    assert shapes([Line(0, "Note: without limits"), Line(1, "a 1")]) == {"a N"}
