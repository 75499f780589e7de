"""The manifests of e2e/install, with what is known only now filled in."""

import json
from pathlib import Path
from string import Template
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("install")


def filled(file: str, **values: Any) -> str:
    """The YAML text; values go in as JSON, which is YAML. Raises KeyError for a place that nothing fills."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    return Template(text).substitute({key: json.dumps(value) for key, value in values.items()})
