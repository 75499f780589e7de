"""A YAML document that gives `metadata` twice: two objects that somebody wrote without `---` between them."""

from typing import Final

import yaml

KEY: Final = "metadata"


def split(root: yaml.Node) -> list[yaml.Node]:
    """The objects of a document; mostly it is one. What stands before the first `metadata` belongs to each of them."""
    if not isinstance(root, yaml.MappingNode):
        return [root]
    starts = [number for number, (key, _) in enumerate(root.value) if _is_metadata(key)]
    if len(starts) < 2:
        return [root]
    head = root.value[: starts[0]]
    parts = zip(starts, [*starts[1:], len(root.value)], strict=True)
    return [_mapping(root, head + root.value[start:end], root.value[start][0]) for start, end in parts]


def _is_metadata(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == KEY


def _mapping(root: yaml.MappingNode, pairs: list[tuple[yaml.Node, yaml.Node]], first: yaml.Node) -> yaml.MappingNode:
    return yaml.MappingNode(root.tag, pairs, first.start_mark, root.end_mark, root.flow_style)
