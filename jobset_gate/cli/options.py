"""Options that several commands have, under the names that kubectl gives them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


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
