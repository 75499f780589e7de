"""From a field path to the line of the manifest it stands in."""

import re
from typing import Final

import yaml

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|\.?([^.\[\]]+)")


def line_of(root: yaml.Node, path: str) -> int:
    """The line (from 1) of the field, or of the innermost part of its path that is there."""
    node, line = root, root.start_mark.line
    for index, quoted, plain in _STEP.findall(path):
        found = _entry(node, int(index)) if index else _member(node, quoted or plain)
        if found is None:
            break
        node, line = found
    return int(line) + 1


def _entry(node: yaml.Node, index: int) -> tuple[yaml.Node, int] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    entry = node.value[index]
    return entry, entry.start_mark.line


def _member(node: yaml.Node, name: str) -> tuple[yaml.Node, int] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in reversed(node.value):
        if isinstance(key, yaml.ScalarNode) and key.value == name:
            return value, key.start_mark.line
    return None
