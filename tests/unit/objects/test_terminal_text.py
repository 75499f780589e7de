"""Text of others: nothing in it can steer a terminal or turn the text around, and what was there can still be seen."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.objects import terminal_text

BIDIRECTIONAL = "\u061c\u200e\u200f" + "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def harmful(text: str, but: str = "") -> list[str]:
    """Controls of every kind."""
    return [
        it for it in text if it not in but and (unicodedata.category(it) in ("Cc", "Zl", "Zp") or it in BIDIRECTIONAL)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("größer als 日本 🚀", "größer als 日本 🚀"),
        ("  two\n\tlines ", "two lines"),
        ("\x1b[2J\x1b]0;owned\x07", "^[[2J^[]0;owned^G"),
        ("\x00\x08\x7f", "^@^H^?"),
        ("\x9b2J\x9d52;c;eA==\x9c", "\\x9b2J\\x9d52;c;eA==\\x9c"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_control_is_shown_and_does_nothing(text: str, shown: str) -> None:
    assert terminal_text.line(text) == shown


@given(st.text(st.characters() | st.sampled_from(BIDIRECTIONAL)))
def test_no_control_gets_through_and_what_is_safe_stays_as_it_is(text: str) -> None:
    one, several = terminal_text.line(text), terminal_text.lines(text)
    assert not harmful(one)
    assert not harmful(several, but="\n")
    assert terminal_text.line(one) == one
    assert terminal_text.lines(several) == several
    one.encode()


def test_text_of_several_lines_keeps_them() -> None:
    assert terminal_text.lines("a\r\n\tb\x1b[0m\rc\n") == "a\n b^[[0m^Mc\n"


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(BIDIRECTIONAL)))
def test_a_document_says_the_same_with_escapes(text: str) -> None:
    document = terminal_text.escaped(json.dumps({"message": text}, ensure_ascii=False))
    assert not harmful(document)
    assert json.loads(document) == {"message": text}
