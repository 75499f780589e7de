"""From a field path to the line of the manifest it stands in, and back."""

import re
from typing import Final

import yaml

from jobset_gate.objects.field_error import child_path

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|\.?([^.\[\]]+)")

Members = dict[str, tuple[yaml.Node, int]]


class LineNumbers:
    """The lines of one document's fields. Members of mappings are indexed: there may be many."""

    def __init__(self, root: yaml.Node) -> None:
        self._root = root
        self._members: dict[int, Members] = {}

    def of(self, path: str) -> int:
        """The line (from 1) of the field, or of the innermost part of its path that is there."""
        node, line = self._root, self._root.start_mark.line
        for index, quoted, plain in _STEP.findall(path):
            found = _entry(node, int(index)) if index else self._member(node, quoted or plain)
            if found is None:
                break
            node, line = found
        return int(line) + 1

    def _member(self, node: yaml.Node, name: str) -> tuple[yaml.Node, int] | None:
        if not isinstance(node, yaml.MappingNode):
            return None
        if id(node) not in self._members:  # the root holds on to it
            pairs = ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
            self._members[id(node)] = {key.value: (value, key.start_mark.line) for key, value in pairs}
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


def _entry(node: yaml.Node, index: int) -> tuple[yaml.Node, int] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    entry = node.value[index]
    return entry, entry.start_mark.line
