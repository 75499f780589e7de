"""docs/reference/json.md: what programs get by `--output json`, from the schemas that tests hold the commands to."""

from collections.abc import Iterator
from typing import Any, Final

from docs.make.api_schemas import API_SCHEMAS
from docs.make.kinds import kind
from docs.make.markdown import code, page, paragraph, table
from docs.make.schemas import SCHEMAS
from jobset_gate.cli.commands.validate import REASONS

Json = dict[str, Any]
_WITHIN: Final = "{}[]"


def text() -> str:
    """The page."""
    return page(
        "JSON",
        "`docs/make/schemas.py` and `api_schemas.py`",
        paragraph(
            "What `--output json` prints, and `--output yaml` in the other form. Fields are added, never renamed or "
            "taken away, so ignore unknown fields. The same as JSON schemas (draft 2020-12) is in the "
            "file named above."
        ),
        table(["command", "prints"], [(it, _link(schema)) for it, schema in SCHEMAS.items()]),
        paragraph(
            "The [status page](../howto/status-page.md) answers requests with a token of the cluster in the same way, "
            "by the rights of the token's owner:"
        ),
        table(["request", "answer"], [(code(it), _link(schema)) for it, schema in API_SCHEMAS.items()]),
        *(part for title, schema in documents().items() for part in _section(title, schema)),
        "## Reasons of findings",
        paragraph(
            "`reason` in what `validate` prints. Those of fields are the causes that an API server's Status names; "
            "SARIF has them as rules."
        ),
        table(["reason", "meaning"], [(code(str(reason)), text) for reason, text in REASONS.items()]),
    )


def documents() -> dict[str, Json]:
    """Each document once, by its title."""
    return {schema["title"]: schema for schema in (*SCHEMAS.values(), *API_SCHEMAS.values())}


def fields(node: Json, path: str = "") -> Iterator[tuple[str, str, str]]:
    """(path, type, meaning) of all fields in an object, in lists and objects within it too."""
    for name, its in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        if (other := _known(its.get("items", {}))) and not path:
            yield here, f"list of [{other}](#{other.lower()})", its["description"]
            continue
        yield here, _kind(its), its["description"]
        yield from fields(its, here)
        yield from fields(its.get("items", {}), _WITHIN.format(here))


def _section(title: str, schema: Json) -> list[str]:
    rows = [(code(path), its, meaning) for path, its, meaning in fields(schema)]
    return [f"## {title}", paragraph(schema["description"]), table(["field", "type", "meaning"], rows)]


def _known(items: Json) -> str:
    """The title of the document that a list holds, if it has a section of its own."""
    same = (title for title, it in documents().items() if it["properties"] == items.get("properties"))
    return next(same, "")


def _kind(node: Json) -> str:
    if "const" in node:
        return code(f'"{node["const"]}"')
    named = kind(node).replace("mapping", "object")
    return named.replace("string", "time", 1) if node.get("format") == "date-time" else named


def _link(schema: Json) -> str:
    return f"[{schema['title']}](#{schema['title'].lower()})"
