"""What is written is read back the same: by us as by kubectl, and by readers of plain YAML 1.1."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.cli.manifests.yaml_text import load, to_json, to_yaml

TRICKY = [
    "", "~", "null", "y", "N", "yes", "No", "on", "OFF", "true", "0", "0777", "0o17", "0x1F", "0b1", "1_000", "1e3",
    "300", "-7", "+.5", ".5", ".inf", ".NaN", "12:30", "1:30:00", "2001-01-01", "2001-12-14 21:59:43.10", "<<", "=",
    "- a", "a: b", "#x", "a #b", "{}", "[]", "!t", "&a", "*a", "|", ">", "%x", "@x", "`x", "'", '"', "?", ":", " x",
    "x ", "---", "...", "a\nb", "a\nb\n", "\n", "a\n\n  b\n", "  a\nb", "\ttab", "x\t\ny", "trailing \nspace", "é🚀",
    "\u0085", "\ufeff", "a\r\nb", "\u2028",
]  # fmt: skip
texts = st.sampled_from(TRICKY) | st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | texts
    | st.floats(-1e9, 1e9).filter(lambda it: it % 1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def as_kubectl(text: str) -> list[Any]:
    return [value for document in load(text, split=False) if document for _, value in document.parts]


@given(st.lists(st.dictionaries(texts, values, max_size=3), min_size=1, max_size=3))
def test_yaml_is_read_back_the_same_by_kubectl_and_by_yaml_1_1(documents: list[Any]) -> None:
    text = to_yaml(documents)
    assert as_kubectl(text) == documents
    assert list(yaml.safe_load_all(text)) == documents


@given(st.dictionaries(texts, values, max_size=3))
def test_json_is_read_back_the_same(document: Any) -> None:
    assert json.loads(to_json([document])) == document


@pytest.mark.parametrize("text", TRICKY)
def test_a_tricky_string_stays_a_string(text: str) -> None:
    written = to_yaml([{"value": text, text: "key"}])
    assert as_kubectl(written) == [{"value": text, text: "key"}]
    assert yaml.safe_load(written) == {"value": text, text: "key"}


def test_the_order_of_keys_is_kept_and_lists_are_blocks() -> None:
    assert to_yaml([{"b": 1, "a": [1, {"d": 2, "c": 3}]}]) == "b: 1\na:\n- 1\n- d: 2\n  c: 3\n"


def test_what_two_places_share_is_written_twice() -> None:
    shared = {"a": 1}
    assert to_yaml([{"x": shared, "z": shared}]) == "x:\n  a: 1\nz:\n  a: 1\n"
