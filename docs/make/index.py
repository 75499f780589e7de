"""docs/reference/README.md: what there is to look up."""

from typing import Final

from docs.make.markdown import page, paragraph, table

CONTENTS: Final = (
    ("api.md", "API", "the field of a JobSet, a gang's ConfigMap, what is in a gated pod, the ways of pod groups"),
    ("annotations-and-labels.md", "Annotations and labels", "each key, who writes it, who reads it"),
    ("reasons.md", "Conditions, Events and reasons", "every reason, state and Event of a gang, a pod or a group"),
    ("commands.md", "Commands", "every command with its arguments and options"),
    ("exit-codes.md", "Exit codes", "of the commands and of the barrier"),
    ("json.md", "JSON", "what `--output json` prints"),
    ("metrics.md", "Metrics", "names, types, labels, meanings"),
    ("alerts.md", "Alerts", "each alert: what is wrong, what that means for gangs, what to look at first"),
    ("settings-file.md", "Settings file", "the file of `--config`"),
    ("values.md", "Values of the chart", "with defaults and types"),
)


def text() -> str:
    """The page."""
    return page(
        "Reference",
        "the code",
        paragraph(
            "All of this is written from the code by `make reference`, and a test fails when a page is not what the "
            "code makes of it."
        ),
        table(["page", "what is in it"], [(f"[{title}]({name})", what) for name, title, what in CONTENTS]),
    )
