"""Options and arguments that several commands have, under the names that kubectl gives them."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, iscoroutine, signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperGroup

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.runner import log_errors, run_command
from jobset_gate.objects import quantity

WEEK: Final = 7 * 24 * 3600.0
"""Seconds that a negative duration stands for."""

MAX_DIGITS: Final = 10
"""Of the number of a group."""
Command = TypeVar("Command", bound=Callable[..., Any])

ALIASES: Final = {
    "gang": "gangs",
    **dict.fromkeys(("jobset", "js"), "jobsets"),
    **dict.fromkeys(("group", "podgroup", "podgroups", "pg"), "groups"),
}
"""Of kinds, after `get`, and of the command `groups`."""


class AliasGroup(TyperGroup):
    """Knows some commands by further names, and kinds as kubectl does: in the singular, short, or the plural."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Called to run a command, to print its help, and to complete its options."""
        return super().resolve_command(ctx, [ALIASES.get(args[0], args[0]), *args[1:]] if args else args)


class CommandApp(typer.Typer):
    """The commands of one module. A parameter whose type is a dataclass stands for the options that are its fields.

    A coroutine is run; it returns the exit code, None if that is 0.
    """

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Command]:
        register = super().command(name, **settings)

        def decorate(function: Command) -> Command:
            register(_with_fields(function))
            return function

        return decorate


def _with_fields(function: Callable[..., Any]) -> Callable[..., None]:
    @wraps(function)
    def call(**given: Any) -> None:
        made = _filled(function, given)
        if iscoroutine(made):
            log_errors()
            raise typer.Exit(asyncio.run(run_command(made)) or ExitCode.OK)

    parameters = list(_options_of(function))
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # typer asks for it, as inspect does
    call.__annotations__ = {it.name: it.annotation for it in parameters}
    return call


def _options_of(target: Any) -> Iterator[Parameter]:
    for it in signature(target, eval_str=True).parameters.values():
        if is_dataclass(it.annotation):
            yield from _options_of(it.annotation)
        else:
            yield it.replace(kind=Parameter.KEYWORD_ONLY)


def _filled(target: Any, given: dict[str, Any]) -> Any:
    """What it makes of the options that are given."""
    parameters = signature(target, eval_str=True).parameters
    wanted = {name: it.annotation for name, it in parameters.items()}
    return target(**{name: _filled(it, given) if is_dataclass(it) else given[name] for name, it in wanted.items()})


def new_app(**settings: Any) -> CommandApp:
    """Markup would import rich for each help text, which takes 150 ms."""
    return CommandApp(rich_markup_mode=None, add_completion=False, **settings)


def parse_duration(text: str | float) -> float:
    """Seconds of 30s, 5m, 1h30m or 500ms, as kubectl takes them; 0 needs no unit. A number is a default."""
    if isinstance(text, int | float):
        return float(text)
    seconds = quantity.parse_duration("-1s" if text.strip() == "-1" else text.strip())
    if seconds is None:
        raise typer.BadParameter(f"{text!r} is not a duration such as 30s, 5m or 1h30m")
    return WEEK if seconds < 0 else float(seconds)


def option(names: str, metavar: str, about: str, *, default: bool | str = True, **more: Any) -> Any:
    """One with a value; `names` may be "-f --filename", and `default` is what the help calls its default."""
    return typer.Option(*names.split(), metavar=metavar, help=about, show_default=default, **more)


def timeout(about: str, *, default: bool | str = False) -> Any:
    """A length of time; `default` is what the help calls it."""
    return option("--timeout", "DURATION", about, parser=parse_duration, default=default)


def namespace(about: str) -> Any:
    """-n, with what a command does there."""
    return option("-n --namespace", "NAME", about)


def port(name: str, about: str, *, default: bool | str = True) -> Any:
    """One to listen on; `default` is what the help calls it."""
    return option(name, "PORT", about, min=0, max=65535, default=default)


Config = Annotated[
    Path | None, option("--config", "FILE", "Settings in YAML: the sections `barrier` and `controller`.")
]

ControllerConfig = Annotated[
    Path | None, option("--config", "FILE", "The controller's settings, where they are not the usual ones.")
]
_ANY: Final = "[jobset/|job/|lws/|startgroup/|trainjob/|pod/|podgroup/]NAME"
_ABOUT: Final = (
    "A JobSet, a Job that is a gang, a LeaderWorkerSet (lws/NAME/2 is one group), or a start group; with a prefix that "
    "of a TrainJob, a pod (for its gang) or a pod group. gang/NAME is a pod group, too."
)
Subjects = Annotated[list[str], typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Subject = Annotated[str, typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Owner = Annotated[
    str,
    option(
        "--owner",
        "NAME",
        "The controller owner of a start group's pods, by name, KIND/NAME or UID: needed where several own one name.",
        default=False,
    ),
]
Namespace = Annotated[str | None, namespace("Where it is; otherwise the context's namespace.")]


class DryRun(StrEnum):
    """Who does as if: nobody; the API server, which checks everything; or this program, which sends no write."""

    NONE = "none"
    SERVER = "server"
    CLIENT = "client"

    @property
    def suffix(self) -> str:
        """What kubectl writes behind what was done."""
        return {DryRun.NONE: "", DryRun.SERVER: " (server dry run)", DryRun.CLIENT: " (dry run)"}[self]


DryRunOption = Annotated[
    DryRun,
    typer.Option("--dry-run", help="client: only print what would be done; server: have the API server check it, too."),
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]


class TextFormat(StrEnum):
    """The form of what is printed: text for people, JSON and YAML for programs."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


TextOutput = Annotated[TextFormat, typer.Option("-o", "--output", help="The form of what is printed.")]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Those of what runs for long."""

    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", help="How to log to standard error; auto: JSON unless it is a terminal."),
    ] = LogFormat.AUTO
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="The least important log lines to show.")] = (
        LogLevel.INFO
    )


# --- What a person names: NAME or KIND/NAME --------------------------------------------------------------------------


class ResourceKind(StrEnum):
    """The kinds of things that can be asked about."""

    ANY = ""
    JOBSET = "jobset"
    JOB = "job"
    LWS = "lws"
    """A LeaderWorkerSet with all its groups."""
    LWS_GROUP = "lws group"
    """One group of it, by the name of its leader pod."""
    START_GROUP = "startgroup"
    """Resolved to its gang, one of those of its name."""
    TRAIN_JOB = "trainjob"
    """Resolved to its JobSet."""
    POD = "pod"
    POD_GROUP = "podgroup"


_KINDS: Final = {
    **dict.fromkeys(
        ("jobset", "jobsets", "js", "jobset.jobset.x-k8s.io", "jobsets.jobset.x-k8s.io"), ResourceKind.JOBSET
    ),
    **dict.fromkeys(("job", "jobs", "job.batch", "jobs.batch"), ResourceKind.JOB),
    **dict.fromkeys(
        (
            *("lws", "leaderworkerset", "leaderworkersets"),
            *("leaderworkerset.leaderworkerset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io"),
        ),
        ResourceKind.LWS,
    ),
    **dict.fromkeys(("startgroup", "startgroups"), ResourceKind.START_GROUP),
    **dict.fromkeys(("trainjob", "trainjobs", "trainjobs.trainer.kubeflow.org"), ResourceKind.TRAIN_JOB),
    **dict.fromkeys(("pod", "pods", "po"), ResourceKind.POD),
    **dict.fromkeys(("podgroup", "podgroups", "pg", "gang", "gangs", "group", "groups"), ResourceKind.POD_GROUP),
}


@dataclass(frozen=True, slots=True)
class ResourceArgument:
    """One thing by its kind and name."""

    kind: ResourceKind
    name: str
    owner: str = ""
    """Of a start group's pods."""


def parse_resource(text: str, owner: str = "") -> ResourceArgument:
    """Raises CommandError for what is no name of anything we know. With an owner a bare name is a start group's."""
    kind, slash, name = text.partition("/") if "/" in text else ("", "", text)
    what = _KINDS.get(kind.lower()) if slash else ResourceKind.ANY
    name, index, group = name.partition("/")
    if what is None or (index and what is not ResourceKind.LWS):
        known = "NAME, jobset/NAME, job/NAME, lws/NAME, lws/NAME/GROUP, startgroup/NAME, trainjob/NAME, pod/NAME, "
        known += "podgroup/NAME, gang/NAME"
        raise CommandError(f"{text}: no such kind: {text.rpartition('/')[0]} (known are {known})", ExitCode.USAGE)
    if index:
        if not (group.isascii() and group.isdigit() and len(group) < MAX_DIGITS):
            raise CommandError(f"{text}: {group or 'nothing'} is no number of a group", ExitCode.USAGE)
        what, name = ResourceKind.LWS_GROUP, name and f"{name}-{int(group)}"
    if not name:
        raise CommandError(f"{text}: a name is missing", ExitCode.USAGE)
    if owner and what not in (ResourceKind.ANY, ResourceKind.START_GROUP):
        raise CommandError(f"{text}: --owner is of start groups, as in startgroup/NAME", ExitCode.USAGE)
    return ResourceArgument(ResourceKind.START_GROUP if owner else what, name, owner)
