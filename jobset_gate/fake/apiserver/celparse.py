"""The text of a CEL expression -> a tree of tuples.

Nodes: ("lit", value) ("name", text) ("list", [node]) ("map", [(node, node)]) ("field", node, name)
("index", node, node)
("call", function, [node]) ("method", node, name, [node]) ("not", node) ("minus", node)
("op", symbol, left, right) ("if", condition, then, otherwise).
"""

from __future__ import annotations

import ast
import re
from typing import Any

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+|\d+u?)"
    r"|(?P<string>r?(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}]))"
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))


class CelError(Exception):
    """An expression that cannot be read, or that has no value for its input."""


def tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise CelError(f"Syntax error: token recognition error at: {text[place:]!r}")
        found.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
        place = match.end()
    return [*found, ("end", "")]


class Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0

    def parse(self) -> Node:
        """Errors: CelError."""
        node = self._ternary()
        if self._sort != "end":
            raise self._unexpected()
        return node

    @property
    def _sort(self) -> str:
        return self._tokens[self._place][0]

    @property
    def _text(self) -> str:
        return self._tokens[self._place][1]

    def _take(self) -> str:
        text = self._text
        self._place += 1
        return text

    def _accept(self, symbol: str) -> bool:
        if self._sort in ("symbol", "name") and self._text == symbol:
            self._place += 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise self._unexpected()

    def _unexpected(self) -> CelError:
        return CelError(f"Syntax error: unexpected {self._text or 'end of expression'!r}")

    def _ternary(self) -> Node:
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        then = self._binary(0)
        self._expect(":")
        return ("if", condition, then, self._ternary())

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._sort in ("symbol", "name") and self._text in _LEVELS[level]:
            symbol = self._take()
            left = ("op", symbol, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        if self._accept("!"):
            return ("not", self._unary())
        if self._accept("-"):
            return ("minus", self._unary())
        return self._member(self._primary())

    def _member(self, node: Node) -> Node:
        while True:
            if self._accept("."):
                name = self._take()
                node = ("method", node, name, self._arguments(")")) if self._accept("(") else ("field", node, name)
            elif self._accept("["):
                node = ("index", node, self._ternary())
                self._expect("]")
            else:
                return node

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        while not self._accept(end):
            found.append(self._ternary())
            if not self._accept(","):
                self._expect(end)
                break
        return found

    def _primary(self) -> Node:
        if self._accept("("):
            node = self._ternary()
            self._expect(")")
            return node
        if self._accept("["):
            return ("list", self._arguments("]"))
        if self._accept("{"):
            return self._map()
        if self._sort == "name" and self._text not in _WORDS:
            text = self._take()
            return ("call", text, self._arguments(")")) if self._accept("(") else ("name", text)
        return ("lit", self._literal())

    def _literal(self) -> Any:
        match self._sort:
            case "number":
                text = self._take()
                return float(text) if "." in text else int(text.rstrip("u"), 0)
            case "string":
                return ast.literal_eval(self._take())
            case "name":
                return _WORDS[self._take()]
            case _:
                raise self._unexpected()

    def _map(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            key = self._ternary()
            self._expect(":")
            entries.append((key, self._ternary()))
            if not self._accept(","):
                self._expect("}")
                break
        return ("map", entries)
