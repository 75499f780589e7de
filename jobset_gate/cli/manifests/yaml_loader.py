"""YAML text to plain JSON values, read as kubectl reads it, and the nodes that know the lines."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

from jobset_gate.objects.field_error import LONGEST_VALUE, child_path

Scalar = None | bool | int | float | str

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{word: True for low in ("y", "yes", "true", "on") for word in (low, low.capitalize(), low.upper())},
    **{word: False for low in ("n", "no", "false", "off") for word in (low, low.capitalize(), low.upper())},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = (16, 2, 8, 10)
_MOST_DIGITS: Final = 64
"""Of an integer of 64 bits, in base 2; Python reads no decimal one of more than 4,300."""
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_LONGEST_INTEGER: Final = 1e21
"""Below this a float without a fraction is written to JSON without a point, so it arrives as an integer."""


def parse_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "") if text[0] != "." else text
    whole = _INTEGER.fullmatch(plain)
    if whole is not None:
        sign, *digits = whole.groups()
        part, base = next((part, base) for part, base in zip(digits, _BASES, strict=True) if part is not None)
        if len(part.lstrip("0")) <= _MOST_DIGITS and _SMALLEST <= (value := int(sign + part, base)) <= _LARGEST:
            return value
    if _FLOAT.fullmatch(plain):
        return number(float(plain))
    return text


def number(value: float) -> int | float:
    """A float as it arrives at the API server."""
    return int(value) if value.is_integer() and abs(value) < _LONGEST_INTEGER else value


MOST_NODES: Final = 1_000_000
"""More values than any manifest has: aliases of aliases can make a short text explode."""

_TAG: Final = "tag:yaml.org,2002:"
_TAGS: Final[dict[type, str]] = {
    type(None): f"{_TAG}null",
    bool: f"{_TAG}bool",
    int: f"{_TAG}int",
    float: f"{_TAG}float",
    str: f"{_TAG}str",
}


class TooManyValues(ValueError):
    """Aliases or merge keys expand to too many values."""


class YamlLoader(yaml.SafeLoader):
    """YAML without surprises: JSON's types only, keys are strings, no key twice."""

    merged: int = 0
    """Members that merge keys have copied so far: merges of merges can make a short text explode, too."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the members that merge keys stand for before the node's own, as the base class does, but count them."""
        kept: list[tuple[yaml.Node, yaml.Node]] = []
        sources: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag != f"{_TAG}merge":
                kept.append((key, value))
            elif isinstance(value, yaml.SequenceNode):
                sources += reversed(value.value)
            else:
                sources.append(value)
        if not sources:
            return
        node.value = kept  # now, as a mapping may merge itself
        members: list[tuple[yaml.Node, yaml.Node]] = []
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                problem = "expected a mapping or list of mappings for merging"
                raise ConstructorError("while constructing a mapping", node.start_mark, problem, source.start_mark)
            self.flatten_mapping(source)
            self.merged += len(source.value)
            if self.merged > MOST_NODES:
                raise TooManyValues(f"stands for more than {MOST_NODES} values")
            members += source.value
        node.value = members + kept

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        """The tag of a node without one."""
        if kind is yaml.ScalarNode and implicit[0]:
            return f"{_TAG}merge" if value == "<<" else _TAGS[type(parse_scalar(value or ""))]
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]  # PyYAML's stubs


def load_parts(text: str, *, split: bool) -> Iterator[list[tuple[yaml.Node, Any]]]:
    """For each document its root node and value, the value free of shared parts; with `split` one for each `metadata`.

    Raises yaml.YAMLError, TooManyValues.
    """
    loader = YamlLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                budget = [MOST_NODES]
                parts = _split(node) if split else [node]
                try:
                    yield [(part, _unshared(loader.construct_document(part), budget)) for part in parts]
                except ConstructorError as problem:
                    where = path_at(node, problem.problem_mark)
                    if where:
                        problem.problem = f"{problem.problem} (at {where})"
                    raise
    finally:
        loader.dispose()


def _scalar(_: YamlLoader, node: yaml.ScalarNode) -> Scalar:
    value = parse_scalar(node.value) if node.tag != _TAGS[str] else node.value
    if isinstance(value, float) and not math.isfinite(value):
        raise ConstructorError(None, None, f"{_cut(node.value)} is no number that Kubernetes knows", node.start_mark)
    if _TAGS[type(value)] != node.tag:
        problem = f"{_cut(node.value)!r} is no {node.tag.removeprefix(_TAG)}"
        raise ConstructorError(None, None, problem, node.start_mark)
    return value


def _cut(text: str) -> str:
    """A value in a message, cut where it is long."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:20]}... ({len(text)} characters)"


def _sequence(loader: YamlLoader, node: yaml.SequenceNode) -> Iterator[list[Any]]:
    made: list[Any] = []
    yield made
    made += [loader.construct_object(each) for each in node.value]


def _mapping(loader: YamlLoader, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    _refuse_doubles(loader, node)
    made: dict[str, Any] = {}
    yield made
    loader.flatten_mapping(node)
    for key, value in node.value:
        made[_key(loader, key)] = loader.construct_object(value)


def _refuse_doubles(loader: YamlLoader, node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == f"{_TAG}merge":
            continue
        name = _key(loader, key)
        if name in seen:
            raise ConstructorError(
                None, None, f"the key {name!r} is given twice: kubectl silently takes the last value", key.start_mark
            )
        seen.add(name)


def _key(loader: YamlLoader, node: yaml.Node) -> str:
    value = loader.construct_object(node) if isinstance(node, yaml.ScalarNode) else None
    if value is None:
        raise ConstructorError(None, None, "a key must be a string", node.start_mark)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _foreign(_: YamlLoader, node: yaml.Node) -> None:
    raise ConstructorError(None, None, f"the tag {node.tag} has no meaning to Kubernetes", node.start_mark)


def _unshared(value: Any, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise TooManyValues(f"stands for more than {MOST_NODES} values")
    if isinstance(value, dict):
        return {key: _unshared(each, budget) for key, each in value.items()}
    if isinstance(value, list):
        return [_unshared(each, budget) for each in value]
    return value


YamlLoader.yaml_constructors = {}
for _tag in _TAGS.values():
    YamlLoader.add_constructor(_tag, _scalar)
YamlLoader.add_constructor(f"{_TAG}map", _mapping)
YamlLoader.add_constructor(f"{_TAG}seq", _sequence)
YamlLoader.add_constructor(None, _foreign)


def _split(root: yaml.Node) -> list[yaml.Node]:
    """The objects of a document; mostly it is one. What stands before the first `metadata` belongs to each of them."""
    if not isinstance(root, yaml.MappingNode):
        return [root]
    starts = [number for number, (key, _) in enumerate(root.value) if key.value == "metadata"]
    if len(starts) < 2:
        return [root]
    head, ends = root.value[: starts[0]], [*starts[1:], len(root.value)]
    parts = [(head + root.value[start:end], root.value[start][0]) for start, end in zip(starts, ends, strict=True)]
    return [yaml.MappingNode(root.tag, its, key.start_mark, root.end_mark, root.flow_style) for its, key in parts]


# --- From a field path to its place, and back -------------------------------------------------------------------------

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|\.?([^.\[\]]+)")

Members = dict[str, tuple[yaml.Node, yaml.Mark]]


class Places:
    """Where one document's fields stand. Members of mappings are indexed: there may be many."""

    def __init__(self, root: yaml.Node) -> None:
        self._root = root
        self._members: dict[int, Members] = {}

    def of(self, path: str) -> tuple[int, int]:
        """Line and column (from 1) of the field, or of the innermost part of its path that is there."""
        node, mark = self._root, self._root.start_mark
        for index, quoted, plain in _STEP.findall(path):
            found = _entry(node, int(index)) if index else self._member(node, quoted or plain)
            if found is None:
                break
            node, mark = found
        return mark.line + 1, mark.column + 1

    def _member(self, node: yaml.Node, name: str) -> tuple[yaml.Node, yaml.Mark] | None:
        if not isinstance(node, yaml.MappingNode):
            return None
        if id(node) not in self._members:  # the root holds on to it
            pairs = ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
            self._members[id(node)] = {key.value: (value, key.start_mark) for key, value in pairs}
        return self._members[id(node)].get(name)


def path_at(root: yaml.Node, mark: yaml.Mark | None) -> str:
    """The path of the field whose value, or whose key, begins there; "" for none."""
    reached = [(root, "")]
    seen: set[int] = set()
    for node, path in reached:
        if id(node) in seen or mark is None:
            continue
        seen.add(id(node))
        if path and _begins(node, mark):
            return path
        if isinstance(node, yaml.SequenceNode):
            reached += [(entry, child_path(path, index)) for index, entry in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                here = child_path(path, key.value) if isinstance(key, yaml.ScalarNode) else path
                if _begins(key, mark):
                    return here
                reached.append((value, here))
    return ""


def _begins(node: yaml.Node, mark: yaml.Mark) -> bool:
    return bool(node.start_mark.index == mark.index)


def _entry(node: yaml.Node, index: int) -> tuple[yaml.Node, yaml.Mark] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    entry = node.value[index]
    return entry, entry.start_mark
