"""YAML to JSON values, read as kubectl reads it, and where their fields stand; values to YAML and JSON."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import yaml

from jobset_gate.objects import terminal_text
from jobset_gate.objects.field_error import LONGEST_VALUE
from jobset_gate.objects.unstructured import format_path

Scalar = None | bool | int | float | str

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_YES: Final = ("y", "yes", "true", "on")
IMPLICIT: Final = {
    f"{_TAG}null": re.compile(r"(?:~|null|Null|NULL)?\Z"),
    f"{_TAG}bool": re.compile(
        r"(?:[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)\Z"
    ),
    f"{_TAG}int": re.compile(r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)\Z"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF)\Z|\.(?:nan|NaN|NAN)\Z"
    ),
    _MERGE: re.compile(r"<<\Z"),
}
"""What a scalar without quotes is, the first that matches; a string otherwise."""
_OCTAL: Final = re.compile(r"[-+]?0[0-7]")
_LONGEST_INTEGER: Final = len("-0b") + 64
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_LONGEST_WITHOUT_POINT: Final = 1e21
"""Below this a float without a fraction is written to JSON without a point, so it arrives as an integer."""
MOST_VALUES: Final = 1_000_000
"""More than any manifest has: aliases of aliases and merges of merges can make a short text explode."""


class TooManyValues(ValueError):
    """Aliases or merge keys expand to too many values."""


class BadValue(yaml.MarkedYAMLError):
    """A value that Kubernetes does not know. `path`: the steps to it, from the outside, as far as they are known."""

    def __init__(self, problem: str, node: yaml.Node, *path: str | int) -> None:
        super().__init__(None, None, problem, node.start_mark)
        self.path = path


class YamlLoader(yaml.SafeLoader):
    """Takes unquoted scalars for what Go's reader takes them for."""


YamlLoader.yaml_implicit_resolvers = {}
for _tag, _pattern in IMPLICIT.items():
    YamlLoader.add_implicit_resolver(_tag, _pattern, None)


class YamlDocument:
    """One document. `parts`: root and value of each object that it holds; mostly it is one."""

    def __init__(self, root: yaml.Node, *, split: bool) -> None:
        """With `split` there is one for each `metadata`. Raises BadValue, TooManyValues."""
        self._left = MOST_VALUES
        self._members: dict[int, dict[str, tuple[yaml.Node, yaml.Mark]]] = {}
        roots = _split(root) if split else [root]
        try:
            self.parts = [(it, self._value(it)) for it in roots]
        except BadValue as bad:
            if bad.path:
                bad.problem = f"{bad.problem} (at {format_path(bad.path)})"
            raise

    def place(self, root: yaml.Node, path: str) -> tuple[int, int]:
        """Line and column (from 1) of the field, or of the innermost part of its path that is there."""
        node, mark = root, root.start_mark
        for index, quoted, plain in _STEP.findall(path):
            if isinstance(node, yaml.MappingNode) and (found := self._members_of(node).get(quoted or plain)):
                node, mark = found
            elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
                node = node.value[int(index)]
                mark = node.start_mark
            else:
                break
        return mark.line + 1, mark.column + 1

    def _value(self, node: yaml.Node) -> Any:
        """Free of shared parts."""
        self._count(1)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self._child(each, index) for index, each in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return {name: self._child(each, name) for name, (each, _) in self._members_of(node).items()}
        raise _foreign(node)

    def _child(self, node: yaml.Node, step: str | int) -> Any:
        try:
            return self._value(node)
        except BadValue as bad:
            bad.path = (step, *bad.path)
            raise

    def _members_of(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Mark]]:
        """Value and place of the key by name. The node's own go before those that merge keys stand for."""
        if id(node) in self._members:  # the root holds on to it
            return self._members[id(node)]
        members = self._members[id(node)] = {}  # now, as a mapping may merge itself
        own = [(key, value) for key, value in node.value if key.tag != _MERGE]
        for source in _merged(node):
            more = self._members_of(source)
            self._count(len(more))
            members |= more
        seen: set[str] = set()
        for key, value in own:
            name = _name(key)
            if name in seen:
                problem = f"the key {name!r} is given twice: kubectl silently takes the last value"
                raise BadValue(problem, key, name)
            seen.add(name)
            members[name] = value, key.start_mark
        return members

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooManyValues(f"stands for more than {MOST_VALUES} values")


def load(text: str, *, split: bool) -> Iterator[YamlDocument | None]:
    """The documents; None for an empty one. Raises yaml.YAMLError, TooManyValues."""
    loader = YamlLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield None if node is None else YamlDocument(node, split=split)
    finally:
        loader.dispose()


def number(text: str) -> int | float | str:
    """An unquoted number as it arrives at the API server; one of more than 64 bits that is not decimal is text."""
    plain = text.replace("_", "")
    if len(plain) <= _LONGEST_INTEGER:  # Python reads none of more than 4,300 digits
        with suppress(ValueError):
            value = int(plain, 8 if _OCTAL.match(plain) else 0)
            if _SMALLEST <= value <= _LARGEST:
                return value
    try:
        wide = float(plain.lower().replace(".i", "i").replace(".n", "n"))
    except ValueError:
        return text
    return int(wide) if wide.is_integer() and abs(wide) < _LONGEST_WITHOUT_POINT else wide


def _scalar(node: yaml.ScalarNode) -> Scalar:
    kind = node.tag.removeprefix(_TAG)
    if kind == "str":
        return str(node.value)
    if kind not in ("null", "bool", "int", "float"):
        raise _foreign(node)
    if not IMPLICIT[node.tag].match(node.value):
        raise BadValue(f"{_cut(node.value)!r} is no {kind}", node)
    if kind in ("null", "bool"):
        return None if kind == "null" else node.value.lower() in _YES
    value = number(node.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue(f"{_cut(node.value)} is no number that Kubernetes knows", node)
    return value


def _foreign(node: yaml.Node) -> BadValue:
    return BadValue(f"the tag {node.tag} has no meaning to Kubernetes", node)


def _cut(text: str) -> str:
    """A value in a message, cut where it is long."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:20]}... ({len(text)} characters)"


def _name(key: yaml.Node) -> str:
    value = _scalar(key) if isinstance(key, yaml.ScalarNode) else None
    if value is None:
        raise BadValue("a key must be a string", key)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _merged(node: yaml.MappingNode) -> Iterator[yaml.MappingNode]:
    """The mappings that its merge keys stand for, the first of a list last: its members win."""
    for key, value in node.value:
        if key.tag == _MERGE:
            for source in reversed(value.value) if isinstance(value, yaml.SequenceNode) else (value,):
                if not isinstance(source, yaml.MappingNode):
                    raise BadValue("expected a mapping or list of mappings for merging", source)
                yield source


def _split(root: yaml.Node) -> list[yaml.Node]:
    """The objects of a document. What stands before the first `metadata` belongs to each of them."""
    if not isinstance(root, yaml.MappingNode):
        return [root]
    starts = [number for number, (key, _) in enumerate(root.value) if key.value == "metadata"]
    if len(starts) < 2:
        return [root]
    head, ends = root.value[: starts[0]], [*starts[1:], len(root.value)]
    parts = [(head + root.value[start:end], root.value[start][0]) for start, end in zip(starts, ends, strict=True)]
    return [yaml.MappingNode(root.tag, its, key.start_mark, root.end_mark, root.flow_style) for its, key in parts]


_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|\.?([^.\[\]]+)")


# --- Values to text ---------------------------------------------------------------------------------------------------


class Dumper(yaml.SafeDumper):
    """Quotes whatever any dialect of YAML would take for something else than a string."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Shared parts are written out: anchors are legal YAML, but rare in manifests."""
        return True


def _string(dumper: Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if terminal_text.escaped(text) != text:  # controls, and line breaks of YAML 1.1: within quotes they can be escaped
        style = '"'
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


Dumper.add_representer(str, _string)
for _tag, _pattern in IMPLICIT.items():
    Dumper.add_implicit_resolver(_tag, _pattern, None)


def to_yaml(documents: Sequence[Any]) -> str:
    """All documents in block style, in their order, with `---` between them; no control character stands as itself."""
    dumped = (
        yaml.dump(each, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**31)
        for each in documents
    )
    return "---\n".join(map(terminal_text.escaped, dumped))


def to_json(documents: Sequence[Any]) -> str:
    """All documents one after the other, as kubectl and jq read them."""
    return "".join(terminal_text.escaped(json.dumps(each, indent=2, ensure_ascii=False)) + "\n" for each in documents)
