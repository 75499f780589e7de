"""Every page of docs/reference/, and what makes it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from docs.make import alerts, api, commands, exits, index, keys, metrics, outputs, reasons, settings, values

FOLDER: Final = "docs/reference"
PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "README.md": index.text,
        "api.md": api.text,
        "annotations-and-labels.md": keys.text,
        "reasons.md": reasons.text,
        "commands.md": commands.text,
        "exit-codes.md": exits.text,
        "json.md": outputs.text,
        "metrics.md": metrics.text,
        "alerts.md": alerts.text,
        "settings-file.md": settings.text,
        "values.md": values.text,
    }
)
