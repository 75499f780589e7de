"""Counts, times, words and lists as labels and annotations hold them: what is taken and what is wrong."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups.fields import MAX_COUNT, MAX_GANGS, FieldReader
from jobset_gate.podgroups.model import GangMode


def sheet(value: object) -> FieldReader:
    return FieldReader({"k": value}, "metadata.annotations")


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("007", 7), ("+5", 5), (str(MAX_COUNT), MAX_COUNT)])
def test_a_count_is_a_positive_int32_in_digits(text: str, count: int) -> None:
    read = sheet(text)
    assert (read.count("k"), read.problems) == (count, [])


@pytest.mark.parametrize(
    "text", ["0", "-3", str(2**31), "9" * 900, "", "three", "3.0", " 3", "3\n", "1e3", "\u0663", 3, ["3"]]
)
def test_what_is_no_count_is_reported_once_with_its_value(text: object) -> None:
    read = sheet(text)
    assert read.count("k") is None
    (problem,) = read.problems
    assert (problem.path, problem.value) == ("metadata.annotations.k", text)


@pytest.mark.parametrize(("text", "seconds"), [("1h30m", 5400), ("1.5h", 5400), (".5s", Fraction(1, 2)), ("+2m", 120)])
def test_a_time_is_written_as_go_writes_it(text: str, seconds: Fraction) -> None:
    assert sheet(text).duration("k") == seconds


@pytest.mark.parametrize("text", ["600", "0s", "5 s", "5d", "", "1h30", "99999999h", "9" * 200 + "s", "\u0665s"])
def test_a_time_without_unit_or_beyond_bounds_is_wrong(text: str) -> None:
    read = sheet(text)
    assert read.duration("k") is None
    assert len(read.problems) == 1
    assert "600s or 1h30m" in read.problems[0].message


@pytest.mark.parametrize("text", ["strict", "", "Loose", "Strict "])
def test_a_mode_is_one_of_two_words(text: str) -> None:
    read = sheet(text)
    assert read.mode("k") is None
    assert read.problems[0].message == "must be Strict or NonStrict"
    assert sheet("NonStrict").mode("k") is GangMode.NON_STRICT


@pytest.mark.parametrize(
    ("text", "gangs"), [("", ()), ("[]", ()), (" ", ()), ('["b/y","a/x"]', ("a/x", "b/y")), ('["a/x.y"]', ("a/x.y",))]
)
def test_a_list_of_gangs_is_json_and_sorted(text: str, gangs: tuple[str, ...]) -> None:
    read = sheet(text)
    assert (read.gangs("k"), read.problems) == (gangs, [])


@pytest.mark.parametrize("text", ["a/x", '["x"]', '["a/"]', '["a/b/c"]', '["A/x"]', "[1]", "{}", "null", "[" * 8000])
def test_a_malformed_list_of_gangs_is_reported(text: str) -> None:
    read = sheet(text)
    assert read.gangs("k") is None
    assert "must be a JSON list" in read.problems[0].message


def test_a_gang_listed_twice_is_reported() -> None:
    read = sheet('["a/x","a/x"]')
    assert read.gangs("k") is None
    assert read.problems[0].message == "names a/x twice"


def test_a_list_names_no_more_gangs_than_can_be_looked_at_together() -> None:
    most = sheet(json.dumps([f"a/{number}" for number in range(MAX_GANGS)]))
    assert len(most.gangs("k") or ()) == MAX_GANGS
    more = sheet(json.dumps([f"a/{number}" for number in range(MAX_GANGS + 1)]))
    assert more.gangs("k") is None
    assert more.problems[0].message == f"names {MAX_GANGS + 1} gangs: must be at most {MAX_GANGS}"
    assert len(str(more.problems[0])) < 1000, "it is reported in an Event"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(anything)
def test_every_reader_gives_a_value_or_tells_a_problem(value: object) -> None:
    for read in ("count", "duration", "gangs", "seconds", "quantities"):
        page = sheet(value)
        got = getattr(page, read)("k")
        assert got is None or not page.problems or read == "quantities"
        assert got is not None or page.problems or value is None
