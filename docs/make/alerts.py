"""docs/reference/alerts.md: every alert, from the chart's rule file; the alerts' runbook_url leads here."""

from pathlib import Path
from typing import Any, Final

import yaml

from docs.make.markdown import block, page, paragraph

FILE: Final = Path(__file__).parents[2] / "charts/jobset-gate/files/alerts.yaml"


def text() -> str:
    """The page."""
    groups = yaml.safe_load(FILE.read_text())["groups"]
    return page(
        "Alerts",
        "`charts/jobset-gate/files/alerts.yaml`",
        paragraph(
            "`critical` means that gangs are held up or ended wrongly, `warning` that a look during the "
            "day is enough. How to install the alerts: [metrics.md](../metrics.md#alerts)."
        ),
        *(_alert(rule) for group in groups for rule in group["rules"]),
    )


def _alert(rule: dict[str, Any]) -> str:
    notes = rule["annotations"]
    severity = f"{rule['labels']['severity']}, after {rule['for']}" if "for" in rule else rule["labels"]["severity"]
    said = (f"{notes['summary']} ({severity})", notes["description"], f"**Look at:** {notes['runbook']}")
    return "\n\n".join([f"## {rule['alert']}", *map(paragraph, said), block(rule["expr"], "promql")])
