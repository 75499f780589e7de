"""docs/reference/values.md: every value of the chart, from values.yaml with its comments, and from its schema."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from docs.make.kinds import kind
from docs.make.markdown import code, page, paragraph, table

CHART: Final = Path(__file__).parents[2] / "charts" / "jobset-gate"
Json = Mapping[str, Any]

TOP: Final = "At the top"
_KEY: Final = re.compile(r"^( *)([\w.]+):(?: |$)")


@dataclass(frozen=True, slots=True)
class Value:
    """One line of a table."""

    path: str
    default: str
    kind: str
    comment: str


def text() -> str:
    """The page."""
    source = (CHART / "values.yaml").read_text()
    defaults, documented = yaml.safe_load(source), comments(source)
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = list(_values(defaults, schema, schema, documented))
    parts = [f"## {TOP}", _table(it for it in found if it.path.split(".")[0] in _plain(defaults))]
    for section in (it for it in defaults if it not in _plain(defaults)):
        inside = [it for it in found if it.path.startswith(f"{section}.")]
        parts += [f"## {section}", paragraph(documented.get(section, "")), _table(inside)]
    return page(
        "Values of the chart",
        "`charts/jobset-gate/values.yaml` and `values.schema.json`",
        paragraph(
            "The schema refuses all others. A value set to null takes the program's or Kubernetes' default. What is "
            "installed, and what to set on particular clusters: [the chart](../../charts/jobset-gate/README.md)."
        ),
        *parts,
    )


def comments(source: str) -> dict[str, str]:
    """The comment right above each key of values.yaml, by path."""
    documented: dict[str, str] = {}
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for line in source.splitlines():
        if line.strip().startswith("#"):
            above.append(line.strip().removeprefix("#").strip())
            continue
        if found := _KEY.match(line):
            indent = len(found[1])
            path = [it for it in path if it[0] < indent] + [(indent, found[2])]
            documented[".".join(name for _, name in path)] = " ".join(above)
        above = []
    return documented


def _plain(defaults: Mapping[str, Any]) -> list[str]:
    """Keys at the top that are no sections."""
    return [key for key, value in defaults.items() if not isinstance(value, dict) or not value]


def _values(
    values: Mapping[str, Any],
    node: Mapping[str, Any],
    schema: Mapping[str, Any],
    documented: Mapping[str, str],
    above: str = "",
) -> Iterator[Value]:
    for key, value in values.items():
        path = f"{above}.{key}" if above else key
        its = _resolved(node.get("properties", {}).get(key, {}), schema)
        if isinstance(value, dict) and value and "properties" in its:
            if above and documented.get(path):
                yield Value(path, "", "", documented[path])
            yield from _values(value, its, schema, documented, path)
        else:
            yield Value(path, json.dumps(value), kind(its, lambda it: _resolved(it, schema)), documented.get(path, ""))


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = node.get("$ref", "")
    return schema["definitions"][reference.rpartition("/")[2]] if reference else node


def _table(values: Iterator[Value] | list[Value]) -> str:
    head = ["value", "default", "type", "meaning"]
    return table(head, [(code(it.path), code(it.default), it.kind, it.comment) for it in values])
