"""Counts, times, words and lists as labels and annotations hold them: what is taken and what is wrong."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.objects.field_error import truncate_value
from jobset_gate.podgroups.fields import MAX_COUNT, MAX_GANGS, FieldReader
from jobset_gate.podgroups.model import GangMode


def sheet(value: object) -> FieldReader:
    return FieldReader({"k": value}, "metadata.annotations")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        ("count", "1", 1),
        ("count", "007", 7),
        ("count", "+5", 5),
        ("count", str(MAX_COUNT), MAX_COUNT),
        ("duration", "1h30m", 5400),
        ("duration", "1.5h", 5400),
        ("duration", ".5s", Fraction(1, 2)),
        ("mode", "NonStrict", GangMode.NON_STRICT),
        ("gangs", "", ()),
        ("gangs", "[]", ()),
        ("gangs", '["b/y","a/x"]', ("a/x", "b/y")),
        ("gangs", '["a/x.y"]', ("a/x.y",)),
    ],
)
def test_a_value_is_read_as_its_design_writes_it(read: str, text: str, value: object) -> None:
    """Counts are positive int32 in digits, times are Go's, lists of gangs are JSON and get sorted."""
    reader = sheet(text)
    assert (getattr(reader, read)("k"), reader.problems) == (value, [])


COUNTS = ["0", "-3", str(2**31), "9" * 900, "", "three", "3.0", " 3", "3\n", "1e3", "\u0663", 3, ["3"]]
TIMES = ["600", "0s", "5 s", "5d", "", "1h30", "99999999h", "9" * 200 + "s", "\u0665s"]
LISTS = ["a/x", '["x"]', '["a/"]', '["a/b/c"]', '["A/x"]', "[1]", "{}", "null", "[" * 8000]


@pytest.mark.parametrize(
    ("read", "texts", "message"),
    [
        ("count", COUNTS, "must be"),
        ("duration", TIMES, "600s or 1h30m"),
        ("mode", ["strict", "", "Loose", "Strict "], "must be Strict or NonStrict"),
        ("gangs", LISTS, "must be a JSON list"),
        ("gangs", ['["a/x","a/x"]'], "names a/x twice"),
    ],
    ids=["counts", "times", "modes", "lists of gangs", "a gang listed twice"],
)
def test_any_other_value_is_reported_once_with_its_path(read: str, texts: list[object], message: str) -> None:
    for text in texts:
        reader = sheet(text)
        assert getattr(reader, read)("k") is None, text
        (problem,) = reader.problems
        assert (problem.path, problem.value) == ("metadata.annotations.k", truncate_value(text))
        assert message in problem.message


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
