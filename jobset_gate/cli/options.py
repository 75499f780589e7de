"""Options that several commands have, under the names that kubectl gives them."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(rf"-?(?:{_PART.pattern})+")
WEEK: Final = 7 * 24 * 3600.0
"""Seconds that a negative duration stands for."""


def new_app(**settings: Any) -> typer.Typer:
    """For the commands of one module. Markup would import rich for each help text, which takes 150 ms."""
    return typer.Typer(rich_markup_mode=None, add_completion=False, **settings)


def program(context: typer.Context) -> str:
    """The name that this program was called by."""
    return context.find_root().info_name or "jobset-gate"


def parse_duration(text: str | float) -> float:
    """Seconds of 30s, 5m, 1h30m or 500ms, as kubectl takes them; 0 needs no unit. A number is a default."""
    if isinstance(text, int | float):
        return float(text)
    given = text.strip()
    if given in ("0", "-0"):
        return 0.0
    if given == "-1" or (given.startswith("-") and _DURATION.fullmatch(given)):
        return WEEK
    if not _DURATION.fullmatch(given):
        raise typer.BadParameter(f"{text!r} is no length of time such as 30s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(given))


def timeout(about: str, *, default: bool | str = False) -> Any:
    """A length of time; `default` is what the help calls it."""
    return typer.Option("--timeout", metavar="DURATION", parser=parse_duration, help=about, show_default=default)


def namespace(about: str) -> Any:
    """-n, with what a command does there."""
    return typer.Option("-n", "--namespace", metavar="NAME", help=about, show_default=False)


def port(name: str, about: str, *, default: bool | str = True) -> Any:
    """One to listen on; `default` is what the help calls it."""
    return typer.Option(name, metavar="PORT", min=0, max=65535, help=about, show_default=default)


Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The kubeconfig to use; otherwise that of the pod we run in, $KUBECONFIG, or ~/.kube/config.",
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="The context of the kubeconfig to use.", show_default=False),
]
Files = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="A manifest in YAML or JSON, of one or more documents; - reads standard input. May be repeated.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings in YAML: the sections `barrier` and `controller`.",
        show_default=False,
    ),
]

ControllerConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The controller's settings, where they are not the usual ones.",
        show_default=False,
    ),
]
_ANY: Final = "[jobset/|pod/|podgroup/]NAME"
_ABOUT: Final = "A JobSet; with a prefix a pod (for its gang) or a pod group. gang/NAME is a pod group, too."
Subjects = Annotated[list[str], typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Subject = Annotated[str, typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Namespace = Annotated[str | None, namespace("Where it is; otherwise the context's namespace.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]


class TextFormat(StrEnum):
    """The form of what is printed: text for people, JSON and YAML for programs."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


TextOutput = Annotated[TextFormat, typer.Option("-o", "--output", help="The form of what is printed.")]


class OutputFormat(StrEnum):
    """The form of what `get` prints."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Only those of these names.", show_default=False)
]
NamespaceFilter = Annotated[str | None, namespace("What is in this namespace; otherwise in the context's.")]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="What is in all namespaces.")]
OutputOption = Annotated[OutputFormat, typer.Option("-o", "--output", help="The form of what is printed.")]
NoHeaders = Annotated[bool, typer.Option("--no-headers", help="The table without its headers.")]
WatchOption = Annotated[bool, typer.Option("-w", "--watch", help="Go on, and print what changes.")]


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least important lines that are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="How to log to standard error; auto: JSON unless it is a terminal.")
]
LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="The least important log lines to show.")]
