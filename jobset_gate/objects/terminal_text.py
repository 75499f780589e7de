"""Text of others, made safe for a terminal, a condition, an Event or a log line: it can move, hide or turn nothing.

C0 and C1 controls, DEL, bidirectional controls, line separators and lone surrogates never get through: each is shown
in a visible form instead, ESC as kubectl shows it.
"""

import re
from collections.abc import Sequence
from typing import Final

_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FORBIDDEN_IN_LINES: Final = re.compile(_FORBIDDEN.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_ESCAPED_IN_JSON: Final = re.compile(_FORBIDDEN.pattern.replace("\x00-\x1f", ""))


def line(text: str) -> str:
    """One line: each run of white space becomes one space, every other control its visible form."""
    joined = " ".join(text.split())
    return joined if joined.isprintable() else _FORBIDDEN.sub(_visible, joined)


def lines(text: str) -> str:
    """The same for text of several lines: line feeds stay, a tab becomes a space."""
    if text.isprintable():
        return text
    return _FORBIDDEN_IN_LINES.sub(_visible, text.replace("\r\n", "\n").replace("\t", " "))


def escaped(document: str) -> str:
    """JSON, or YAML with double quotes around such characters: the same document, with escapes for the controls.

    C0 controls are left alone: in JSON and YAML they are escaped already, or they are its line feeds.
    """
    return document if document.isprintable() else _ESCAPED_IN_JSON.sub(_unicode_escape, document)


def _visible(found: re.Match[str]) -> str:
    """`^[` for ESC, `^?` for DEL; the hexadecimal escape of Python and JSON for all others."""
    code = ord(found.group())
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    return f"\\x{code:02x}" if code < 0x100 else _unicode_escape(found)


def _unicode_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def truncate_list(texts: Sequence[str], most: int, between: str = ", ") -> str:
    """The first texts of a list in one line, and how many more there are."""
    more = len(texts) - most
    rest = f"{' ' if between == ', ' else between}and {more} more" if more > 0 else ""
    return between.join(texts[:most]) + rest
