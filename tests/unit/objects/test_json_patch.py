"""The edit: a document and the RFC 6902 operations that make it, always in step."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.objects.json_patch import PatchBuilder
from tests.fakes.jobsets import Json, applied


@pytest.mark.parametrize("before", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}])
def test_missing_parents_are_made_in_one_operation(before: Json) -> None:
    edit = PatchBuilder(before)
    edit.set(("a", "b", "c"), 1)
    assert edit.document == {"a": {"b": {"c": 1}}}
    assert len(edit.operations) == 1
    assert applied(before, edit.operations) == edit.document


def test_a_value_that_was_put_in_can_be_changed_without_changing_the_operation_before() -> None:
    edit = PatchBuilder({})
    edit.set(("a",), {"b": [1]})
    edit.insert(("a", "b", 1), 2)
    edit.set(("a", "c"), 3)
    assert edit.operations[0]["value"] == {"b": [1]}
    assert applied({}, edit.operations) == edit.document == {"a": {"b": [1, 2], "c": 3}}


paths = st.sampled_from([("a",), ("b/c",), ("a", "b/c"), ("b/c", "a", "a"), ("new", "a"), ("b/c", "list")])
values: st.SearchStrategy[Any] = st.sampled_from([1, "x", None, {"a": {}}, {"b/c": {"a": 1}}])


@given(st.lists(st.tuples(paths, values), max_size=12))
def test_document_and_operations_agree_and_the_original_stays(made: list[tuple[tuple[str, ...], Any]]) -> None:
    original = {"a": {"b/c": [1]}, "b/c": {"a": {"a": None}, "list": [1, 2]}}
    untouched = copy.deepcopy(original)
    edit = PatchBuilder(original)
    for path, value in made:
        if all(isinstance(it, dict | None) for it in _on_the_way(edit.document, path)):
            edit.set(path, copy.deepcopy(value))
    assert applied(untouched, edit.operations) == edit.document
    assert original == untouched


@given(st.lists(st.tuples(st.sampled_from(["insert", "replace", "remove"]), st.integers(0, 5)), max_size=12))
def test_entries_of_lists_are_moved_in_step_too(made: list[tuple[str, int]]) -> None:
    original = {"list": [{"n": 1}, {"n": 2}]}
    untouched = copy.deepcopy(original)
    edit = PatchBuilder(original)
    for verb, index in made:
        length = len(edit.document["list"])
        if verb == "insert":
            edit.insert(("list", min(index, length)), {"n": index})
        elif index < length and verb == "replace":
            edit.replace(("list", index), {"n": -index})
        elif index < length:
            edit.remove(("list", index))
    assert applied(untouched, edit.operations) == edit.document
    assert original == untouched


def _on_the_way(document: Any, path: tuple[str, ...]) -> list[Any]:
    found = []
    for key in path[:-1]:
        document = document.get(key) if isinstance(document, dict) else document
        found.append(document)
    return found
