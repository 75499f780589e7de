"""docs/reference/settings-file.md: the file of `--config`, from the models that read it."""

import json
import re
from typing import Final

import msgspec

from controllers.manager import ManagerOptions
from docs.make import sentences
from docs.make.kinds import kind
from docs.make.markdown import block, code, page, paragraph, table
from jobset_gate.cli.settings_file import SECTION, ControllerSection
from jobset_gate.settings import Settings

_NONE: Final = re.compile(r"\bNone\b")
EXAMPLE: Final = """
barrier:
  image: registry.example/busybox:1.37
  graceSeconds: 180
groups:
  capacityCheck: Probe
controller:
  workers: 16
"""


def text() -> str:
    """The page."""
    sections = msgspec.structs.fields(Settings)
    return page(
        "Settings file",
        "`jobset_gate/settings.py` and `jobset_gate/cli/settings_file.py`",
        paragraph(
            "`webhook`, `controller`, `render`, `validate` and the commands that look at groups read it with "
            "`--config`. One YAML mapping; every key may be absent, and one that is not known is refused with its "
            "path. The chart writes it from [its values](values.md), so with the chart there is none to be written. An "
            "option of the command line wins over the file."
        ),
        block(EXAMPLE, "yaml"),
        *(it for section in sections for it in _section(section.encode_name, section.type)),
        *_section(SECTION, ControllerSection, ManagerOptions()),
    )


def fields(model: type[msgspec.Struct], otherwise: object = None) -> list[tuple[str, str, str, str]]:
    """(key, default, type, meaning) of each field. `otherwise`: what has the default where the model has none."""
    _, schemas = msgspec.json.schema_components([model], ref_template="{name}")
    documented, plain = sentences.inherited(model), msgspec.to_builtins(model())
    rows = []
    for field in msgspec.structs.fields(model):
        name, key = field.name, field.encode_name
        default = getattr(otherwise, name, None) if plain[key] is None else plain[key]
        allowed = kind(schemas[model.__name__]["properties"][key], lambda it: schemas.get(it.get("$ref", ""), it))
        rows.append(
            (code(key), code(json.dumps(default, default=str)), allowed, _NONE.sub("null", documented.get(name, "")))
        )
    return rows


def _section(name: str, model: type[msgspec.Struct], otherwise: object = None) -> list[str]:
    about = _NONE.sub("null", sentences.plain(model.__doc__ or ""))
    head = ["key", "default", "type", "meaning"]
    return [f"## {name}", paragraph(about), table(head, fields(model, otherwise))]
