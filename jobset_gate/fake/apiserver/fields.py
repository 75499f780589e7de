"""Sets of field paths, kept in the very form in which `managedFields` writes them (FieldsV1).

A set is a tree: {"f:spec": {"f:replicas": {}}} holds the path spec.replicas. A node without children is a member; one
with children is a member only when it has the key ".". Steps are `f:<field>`, `k:<JSON of a list-map item's keys>` and
`v:<JSON of a set's value>`.
"""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver.encoding import Obj, decode, encode
from jobset_gate.fake.apiserver.shapes import Shape

Tree = dict[str, Any]


def is_member(node: Tree | None) -> bool:
    """Whether the node itself belongs to the set (None: there is no such node)."""
    return node is not None and (not node or "." in node)


def steps(node: Tree) -> list[str]:
    return [step for step in node if step != "."]


def _node(member: bool, children: Tree) -> Tree | None:
    """None when nothing of it belongs to the set."""
    if not children:
        return {} if member else None
    return {".": {}, **children} if member else children


def _root(children: Tree) -> Tree | None:
    return children or None


def union(left: Tree | None, right: Tree | None) -> Tree | None:
    if left is None or right is None:
        return right if left is None else left
    children: Tree = {}
    for step in dict.fromkeys((*steps(left), *steps(right))):
        children[step] = union(left.get(step), right.get(step))
    return _node(is_member(left) or is_member(right), children)


def difference(left: Tree | None, right: Tree | None) -> Tree | None:
    """The members of `left` that are not members of `right`."""
    if left is None or right is None:
        return left
    children = {}
    for step in steps(left):
        rest = difference(left[step], right.get(step))
        if rest is not None:
            children[step] = rest
    return _node(is_member(left) and not is_member(right), children)


def intersection(left: Tree | None, right: Tree | None) -> Tree | None:
    if left is None or right is None:
        return None
    children = {}
    for step in steps(left):
        both = intersection(left[step], right.get(step))
        if both is not None:
            children[step] = both
    return _node(is_member(left) and is_member(right), children)


def paths(tree: Tree | None, so_far: str = "") -> list[str]:
    """The members as people read them: `.spec.template.spec.containers[name="main"].image`."""
    if tree is None:
        return []
    found = [so_far] if is_member(tree) and so_far else []
    for step in sorted(steps(tree)):
        found += paths(tree[step], so_far + shown(step))
    return found


def shown(step: str) -> str:
    """One step as people read it."""
    sort, _, text = step.partition(":")
    if sort == "f":
        return f".{text}"
    if sort == "k":
        inner = ",".join(f"{key}={encode(value).decode()}" for key, value in _keys_of(text).items())
        return f"[{inner}]"
    return f"[={text}]"


def _keys_of(text: str) -> Obj:
    keys: Obj = decode(text.encode())
    return keys


def item_step(item: Any, shape: Shape) -> str:
    """The step to a list's item, by the list's keys or (in a set) its value."""
    if shape.a_set:
        return f"v:{encode(item).decode()}"
    defaults = shape.key_defaults
    given = item if isinstance(item, dict) else {}
    keys = {key: given.get(key, defaults.get(key)) for key in sorted(shape.keys)}
    return f"k:{encode({key: value for key, value in keys.items() if value is not None}).decode()}"


def merges(value: Any, shape: Shape) -> bool:
    """Whether `value` has parts that are owned one by one."""
    if shape.atomic:
        return False
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and (shape.a_set or bool(shape.keys))


def indexed(items: list[Any] | None, shape: Shape) -> dict[str, Any]:
    """A list's items by their steps; of duplicates the first."""
    found: dict[str, Any] = {}
    for item in items or ():
        found.setdefault(item_step(item, shape), item)
    return found


def of(value: Any, shape: Shape) -> Tree | None:
    """The fields of an applied configuration: its leaves, list items and map keys."""
    if not merges(value, shape):
        return {}
    children: Tree = {}
    if isinstance(value, dict):
        for name, part in value.items():
            tree = of(part, shape.at(name))
            if part is None or part == {}:
                tree = {}
            elif not shape.declares(name):
                tree = union(tree, {})
            if tree is not None:
                children[f"f:{name}"] = tree
    else:
        for step, item in indexed(value, shape).items():
            children[step] = union(of(item, shape.item()), {})
    return _root(children)


class Comparison:
    """What changed between two values: three sets."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, old: Any, new: Any, shape: Shape) -> None:
        self.added: Tree | None = None
        self.modified: Tree | None = None
        self.removed: Tree | None = None
        added, modified, removed = {}, {}, {}
        for step, before, after, below in _pairs(old, new, shape):
            plus, change, minus = _compare(before, after, below)
            if plus is not None:
                added[step] = plus
            if change is not None:
                modified[step] = change
            if minus is not None:
                removed[step] = minus
        self.added, self.modified, self.removed = _root(added), _root(modified), _root(removed)

    @property
    def nothing(self) -> bool:
        return self.added is None and self.modified is None and self.removed is None


_ABSENT: Any = object()
_Three = tuple[Tree | None, Tree | None, Tree | None]


def _pairs(old: Any, new: Any, shape: Shape) -> list[tuple[str, Any, Any, Shape]]:
    """The parts of two values side by side; of parts that are the same object or equal none."""
    if isinstance(old, dict) or isinstance(new, dict):
        before, after = old or {}, new or {}
        names = [*before, *(name for name in after if name not in before)]
        sides = ((f"f:{name}", before.get(name, _ABSENT), after.get(name, _ABSENT), shape.at(name)) for name in names)
    else:
        left, right = indexed(old, shape), indexed(new, shape)
        both = [*left, *(step for step in right if step not in left)]
        sides = ((step, left.get(step, _ABSENT), right.get(step, _ABSENT), shape.item()) for step in both)
    return [side for side in sides if side[1] is not side[2] and side[1] != side[2]]


def _compare(old: Any, new: Any, shape: Shape) -> _Three:
    if new is _ABSENT:
        return None, None, _whole(old, shape)
    if old is _ABSENT:
        return _whole(new, shape), None, None
    if type(old) is type(new) and merges(new, shape) and (old or new):
        three = Comparison(old, new, shape)
        return three.added, three.modified, three.removed
    return None, {}, None


def _whole(value: Any, shape: Shape, *, inside: bool = False) -> Tree | None:
    """Everything in a value that came or went as a whole.

    inside: within something that came or went too, where nothing was there before.
    """
    if not value or not merges(value, shape):
        return {}
    inside = inside or not shape.always
    children: Tree = {}
    if isinstance(value, dict):
        for name, part in value.items():
            tree = _whole(part, shape.at(name), inside=inside)
            if tree is not None:
                children[f"f:{name}"] = tree
    else:
        for step, item in indexed(value, shape).items():
            children[step] = union(_whole(item, shape.item(), inside=True), {})
    return _node(inside, children)
