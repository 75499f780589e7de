"""The picture by its content: sound XML, a row for each pod or band, times in order, words for who cannot see it."""

import re
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from jobset_gate.timeline.model import Timeline
from jobset_gate.timeline.summary import idle_devices
from jobset_gate.timeline.svg import CSS_CLASS, LEFT, MOST_THIN, RIGHT, WIDTH, drawing_svg, make_drawing, timeline_svg
from tests.fakes.timelines import GPUS, T0, held, pod, through, timeline, timelines

SVG = "{http://www.w3.org/2000/svg}"
ORDER = list(CSS_CLASS.values())


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - it is our own


def drawn(it: Timeline) -> ET.Element:
    return parsed(timeline_svg(it, idle_devices(it, {"": 2.5})))


def groups(root: ET.Element, kind: str) -> list[ET.Element]:
    return [it for it in root.iter(f"{SVG}g") if it.get("class") == kind]


def boxes(group: ET.Element) -> list[tuple[str, float, float]]:
    found = group.findall(f"{SVG}rect")
    return [(it.get("class", ""), float(it.get("x", "")), float(it.get("width", ""))) for it in found]


def words(root: ET.Element) -> list[str]:
    return [it.text or "" for it in root.iter(f"{SVG}text")]


def four() -> Timeline:
    pods = [through(it, start=10 + it, opened=30 + it % 2, devices=GPUS, node=f"n{it}") for it in range(3)]
    last = through(3, start=28, devices=GPUS, node="n3")
    return timeline(*pods, last, after=3600, opened=T0 + 29, verdict="AllPodsStarted", notes=("a note",))


def many(count: int = 4000) -> Timeline:
    pods = [through(it, start=10 + it / 50, opened=100) for it in range(count - 1)]
    return timeline(*pods, pod(count - 1, at={"created": 0}), after=200, opened=T0 + 95, verdict="Bypassed")


def test_each_of_four_pods_has_a_row_with_its_doings_in_order_and_in_words() -> None:
    found = groups(drawn(four()), "pod")
    assert [it.findtext(f"{SVG}text") for it in found] == [f"workers-0/{it}" for it in range(4)]
    for row in found:
        assert [it[0] for it in boxes(row)] == ["waiting", "preparing", "held", "starting", "running"]
        edges = [(x, x + width) for _, x, width in boxes(row)]
        assert edges == sorted(edges)
        assert edges[0][0] == LEFT
        assert edges[-1][1] == pytest.approx(RIGHT, abs=0.2)
    assert found[3].findtext(f"{SVG}title") == (
        "workers-0/3 (train-workers-0-3-x7k2p) on n3: created +0s, scheduled +1s, image pulled +27s, started +28s,"
        " released +30s, main images pulled +31s, running +32s, held 2s"
    )


def test_the_whole_has_a_title_and_a_description() -> None:
    root = drawn(four())
    title, about = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert about is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"
    assert title.text == (
        "JobSet team-a/train: 4/4 pods started; the gate was opened 29s after its first pod was made (AllPodsStarted)"
    )
    shown = about.text or ""
    assert "start skew, first to last main container: 1s" in shown
    assert "32 nvidia.com/gpu held at the gate: 480 device-seconds, cost 0.33" in shown
    assert shown.endswith("a note")


def test_three_hundred_pods_have_a_line_each_by_replicated_job_in_the_order_of_their_arrival() -> None:
    workers = [through(it, start=100 - it / 3, opened=120, devices=GPUS) for it in range(299)]
    root = drawn(timeline(*workers, through(0, job="driver", start=50, opened=120), opened=T0 + 120, after=200))
    found = groups(root, "pod")
    assert len(found) == 300
    labels = [(it.findtext(f"{SVG}title") or "").split(" ")[0] for it in found]
    assert labels == [*(f"workers-0/{it}" for it in reversed(range(299))), "driver-0/0"]
    assert {"workers", "299 pods", "driver", "1 pod"} <= set(words(root))
    assert float(root.get("height", "")) < 1400
    assert groups(drawn(many(MOST_THIN + 1)), "band")


def test_a_window_shows_what_happened_in_it_alone() -> None:
    whole = make_drawing(four())
    root = parsed(drawing_svg(whole, (20.0, 30.0)))
    assert [it[0] for it in boxes(groups(root, "pod")[0])] == ["held", "starting"]
    assert "gate opened +29s" in words(root)
    assert [it for it in words(root) if it in ("+19s", "+20s", "+25s", "+30s", "+31s")].count("+25s") == 2
    assert not {"+19s", "+31s", "+0s"} & set(words(root))
    root = parsed(drawing_svg(whole, (13.0, 53.0)))
    assert "+15s" in words(root), "marks stay where they are in the whole"
    root = parsed(drawing_svg(whole, (0.0, 5.0)))
    assert "gate opened +29s" not in words(root)


def test_what_is_not_known_is_drawn_as_such_and_who_gave_up_is_marked() -> None:
    (row,) = groups(drawn(timeline(pod(0, at={"created": 0, "started": 20}))), "pod")
    assert [it[0] for it in boxes(row)] == ["unknown", "held"]
    (row,) = groups(drawn(timeline(held(0, gave_up=T0 + 40, alive=False))), "pod")
    assert [it.get("class") for it in row.findall(f"{SVG}line")][-1] == "failed"
    assert "gave up +40s" in (row.findtext(f"{SVG}title") or "")


def test_it_fetches_and_runs_nothing_and_names_cannot_break_out() -> None:
    text = timeline_svg(four())
    assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject|\son\w+=|data:", text)
    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]
    nasty = timeline(held(0, name="a<b>&\"'\x00\ud800"), name="</title><script>", notes=("<&>",))
    root = parsed(timeline_svg(nasty))
    assert not list(root.iter(f"{SVG}script"))
    assert "<&>" in (root.findtext(f"{SVG}desc") or "")


@pytest.mark.parametrize(
    "it", [four(), many(), many(300), timeline(held(0)), timeline(held(0, name="x" * 60, index=None))]
)
def test_no_words_lie_on_others_or_outside(it: Timeline) -> None:
    found = list(places(drawn(it)))
    for left, right, _, _ in found:
        assert left >= 0
        assert right <= WIDTH
    for one, other in combinations(found, 2):
        apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
        assert apart, (one, other)


@given(timelines(70))
@settings(max_examples=25)
def test_any_gang_has_a_sound_picture(it: Timeline) -> None:
    root = drawn(it)
    expected = make_drawing(it).rows
    assert len(groups(root, "pod")) == sum(not row.is_band for row in expected)
    assert len(groups(root, "band")) == sum(row.is_band for row in expected)
    for group in (*groups(root, "pod"), *groups(root, "band")):
        assert group.findtext(f"{SVG}title")
        for class_, x, width in boxes(group):
            assert class_ in ORDER
            assert LEFT <= x <= RIGHT
            assert x + width <= RIGHT + 0.7


def places(root: ET.Element) -> Iterator[tuple[float, float, float, float]]:
    """Left, right, top and bottom of each text, estimated generously."""
    for it in root.iter(f"{SVG}text"):
        size, each = (16, 9.6) if it.get("class") == "head" else (12, 6.7)
        width = each * len(it.text or "")
        x, y = float(it.get("x", "")), float(it.get("y", ""))
        left = x - width / 2 if it.get("text-anchor") == "middle" else x
        yield left, left + width, y - 0.75 * size, y
