"""kubectl's JSONPath: templates of `-o jsonpath`, and the paths of `-o custom-columns` and `--sort-by`.

Fields, quoted keys, indexes, slices, unions, `*`, `..`, filters, literals, and range with end. As in kubectl a field
that is missing is nothing, and no error.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from jobset_gate.errors import JobsetGateError
from jobset_gate.objects import terminal_text

Step = Callable[[Any], Iterator[Any]]
"""From one value to those that it selects there."""

_QUOTED: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_BRACES: Final = re.compile(rf"\{{((?:{_QUOTED}|[^{{}}])*)\}}")
_NAME: Final = re.compile(r"(?:\\.|[^\\\s.\[\](){}'\"|,@=<>!?])+")
_BRACKETS: Final = re.compile(rf"\[((?:{_QUOTED}|\[(?:{_QUOTED}|[^\[\]])*\]|[^\[\]])*)\]")
_INDEX: Final = re.compile(r"-?\d+")
_SLICE: Final = re.compile(r"(-?\d+)?:(-?\d+)?(?::(\d+))?")
_FILTER: Final = re.compile(rf"\?\(\s*({_QUOTED}|[^=!<>]+?)\s*(?:(==|!=|<=|>=|<|>)\s*({_QUOTED}|.+?)\s*)?\)")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class BadPath(JobsetGateError):
    """A template that cannot be read, or does not fit the document; the message says where."""


@dataclass(frozen=True, slots=True)
class Path:
    """`from_root`: it begins with `$`, so it does not start at the item of a range."""

    text: str
    steps: tuple[Step, ...]
    from_root: bool = False

    def find(self, root: Any, here: Any) -> list[Any]:
        """What it selects. Raises BadPath for an index beyond the end, or into what is no list."""
        found = [root if self.from_root else here]
        for step in self.steps:
            found = [it for value in found for it in step(value)]
        return found


def parse_path(text: str) -> Path:
    """`.a.b[0]`; also without the dot, or in braces, as kubectl takes it in columns. Raises BadPath."""
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    position = 1 if inner[:1] in ("$", "@") else 0
    steps = list[Step]()
    while position < len(inner):
        if found := _BRACKETS.match(inner, position):
            steps.append(_bracket(found[1].strip(), text))
        elif found := re.compile(rf"(\.\.|\.|(?!\.))({_NAME.pattern}|\*)").match(inner, position):
            if not found[1] and position > 1:
                raise BadPath(f"{text}: cannot be read from {inner[position:]!r} on")
            steps += [_descend] if found[1] == ".." else []
            steps.append(_each if found[2] == "*" else _key(re.sub(r"\\(.)", r"\1", found[2])))
        elif inner[position:] == ".":
            break
        else:
            raise BadPath(f"{text}: cannot be read from {inner[position:]!r} on")
        position = found.end()
    return Path(text, tuple(steps), inner[:1] == "$")


# --- Steps -----------------------------------------------------------------------------------------------------------


def _bracket(inner: str, text: str) -> Step:
    parts = re.findall(rf"(?:{_QUOTED}|[^,])+", inner)
    if found := _FILTER.fullmatch(inner):
        return _filter(found, text)
    if inner == "*":
        return _each
    if found := _SLICE.fullmatch(inner):
        start, end, step = (None if it is None else int(it) for it in found.groups())
        return lambda value: iter(_list(value, text)[start:end:step])
    if parts and all(_INDEX.fullmatch(it.strip()) for it in parts):
        return lambda value: (_at(_list(value, text), int(it), text) for it in parts)
    if parts and all(re.fullmatch(_QUOTED, it.strip()) for it in parts):
        return lambda value: (one for it in parts for one in _key(_unquoted(it.strip()))(value))
    raise BadPath(f"{text}: [{inner}] cannot be read")


def _key(name: str) -> Step:
    return lambda value: iter([value[name]] if isinstance(value, dict) and name in value else [])


def _each(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for inner in _each(value):
        yield from _descend(inner)


def _list(value: Any, text: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadPath(f"{text}: an index into what is no list")
    return value


def _at(values: list[Any], index: int, text: str) -> Any:
    if not -len(values) <= index < len(values):
        raise BadPath(f"{text}: array index out of bounds: index {index}, length {len(values)}")
    return values[index]


def _filter(found: re.Match[str], text: str) -> Step:
    left, right = _operand(found[1]), _operand(found[3]) if found[3] else None
    compare = _COMPARE.get(found[2] or "")

    def holds(value: Any) -> bool:
        ours = left(value)
        if right is None or compare is None:
            return bool(ours)
        try:
            return any(compare(one, other) for one in ours for other in right(value))
        except TypeError:
            return False  # a number and a text are not compared

    return lambda value: (it for it in _list(value, text) if holds(it))


def _operand(text: str) -> Callable[[Any], list[Any]]:
    if re.fullmatch(_QUOTED, text):
        literal: Any = _unquoted(text)
    elif text.startswith(("@", "$", ".")):
        path = parse_path(text)
        return lambda value: path.find(value, value)
    else:
        try:
            literal = json.loads(text)
        except ValueError as error:
            raise BadPath(f"{text}: neither a path nor a value") from error
    return lambda _: [literal]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[1]), text[1:-1])


# --- Templates -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Range:
    path: Path | None
    """None: the whole template."""
    parts: list[Any] = field(default_factory=list)
    """Texts, paths and ranges."""


class Template:
    """Text with paths in braces, `{range PATH}` and `{end}`."""

    def __init__(self, text: str) -> None:
        """Raises BadPath."""
        self._whole = _Range(None)
        open_ranges, position = [self._whole], 0
        for found in _BRACES.finditer(text):
            open_ranges[-1].parts.append(_literal(text[position : found.start()], text))
            inner, position = found[1].strip(), found.end()
            if inner == "end":
                if len(open_ranges) == 1:
                    raise BadPath(f"{text}: {{end}} without {{range}}")
                open_ranges.pop()
            elif inner.startswith("range "):
                made = _Range(parse_path(inner.removeprefix("range ")))
                open_ranges[-1].parts.append(made)
                open_ranges.append(made)
            else:
                open_ranges[-1].parts.append(_unquoted(inner) if re.fullmatch(_QUOTED, inner) else parse_path(inner))
        self._whole.parts.append(_literal(text[position:], text))
        if len(open_ranges) > 1:
            raise BadPath(f"{text}: {{range}} without {{end}}")

    def render(self, document: Any) -> str:
        """The text, in which nothing of others steers a terminal. Raises BadPath."""
        return "".join(_rendered(self._whole, document, document))


def _literal(text: str, whole: str) -> str:
    if "{" in text or "}" in text:
        raise BadPath(f"{whole}: a brace is not closed")
    return text


def _rendered(block: _Range, root: Any, here: Any) -> Iterator[str]:
    for value in [here] if block.path is None else block.path.find(root, here):
        for part in block.parts:
            if isinstance(part, _Range):
                yield from _rendered(part, root, value)
            elif isinstance(part, Path):
                yield " ".join(map(value_text, part.find(root, value)))
            else:
                yield part


def value_text(value: Any) -> str:
    """As kubectl prints it: texts as they are, whole numbers without a fraction, lists and objects as JSON."""
    if isinstance(value, str):
        return terminal_text.line(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else terminal_text.line(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
