"""A JSON schema in a few words: `integer, 1 to 30`, `Fail or Ignore`, `list of string`."""

from collections.abc import Callable, Mapping
from typing import Any

Node = Mapping[str, Any]


def kind(node: Node, resolved: Callable[[Node], Node] = lambda it: it) -> str:
    """What a schema allows; "" if it does not say."""
    node = resolved(node)
    if "enum" in node:
        return _either([str(it) for it in node["enum"]])
    for several in ("anyOf", "oneOf"):
        if several in node:
            documented = [kind(it, resolved) for it in node[several]]
            return _either([it for it in dict.fromkeys(documented) if it])
    named = node.get("type", "")
    if isinstance(named, list):
        return _either([kind({**node, "type": it}, resolved) for it in named])
    if named == "array":
        items = kind(node.get("items", {}), resolved)
        return f"list of {items}" if items else "list"
    if named == "object":
        values = node.get("additionalProperties")
        inner = kind(values, resolved) if isinstance(values, Mapping) else ""
        return f"mapping to {inner}" if inner else "mapping"
    return named + _limits(node) if named in ("integer", "number") else str(named)


def _limits(node: Node) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    above = node.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f", {low} to {high}"
    if above is not None:
        return f", above {above}" + (f" up to {high}" if high is not None else "")
    if low is not None:
        return f", {low} or more"
    return f", at most {high}" if high is not None else ""


def _either(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)
