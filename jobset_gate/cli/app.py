"""The commands of the program. The module of a command is imported when that command is used: this is the one place of
late imports, and it keeps `--help` quick.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer import completion as shells
from typer.core import TyperCommand, TyperGroup

from jobset_gate.cli.exits import CommandError

ABOUT: Final = "A start barrier for Kubernetes JobSets: no pod of a gang starts its work before every pod has started."
CODES: Final = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out."
COMPLETION: Final = "_JOBSET_GATE_COMPLETE"
"""Of the environment: set by the completion scripts when they ask for what might come next."""

COMMANDS: Final = {
    "demo": ("jobset_gate_demo.command", "Watch two gangs on a cluster inside this process."),
    "render": ("render", "Print what the webhook would make of a manifest."),
    "validate": ("validate", "Say all that is wrong with a manifest's gates and groups."),
    "get": ("get", "Show the gated JobSets and the pod groups of a cluster."),
    "why": ("why", "Say why a gang still waits, and what to do about it."),
    "describe": ("describe", "Show everything known of a gang."),
    "wait": ("wait", "Wait until a gang is released, or has timed out."),
    "watch": ("watch", "Watch a gang start, until it is decided."),
    "timeline": ("timeline", "Show how a gang started: who came when."),
    "doctor": ("doctor", "Find what is wrong with an installation."),
    "release": ("release", "Open the gate of a gang's present generation by hand."),
    "bypass": ("release", "Open a gang's gate for good, restarts included."),
    "groups": ("groups_ungate", "Free the pods of groups."),
    "webhook": ("webhook", "Serve the admission webhook."),
    "controller": ("controller", "Run the controller against a cluster."),
    "install-crd-field": ("install_crd_field", "Add the field to the JobSet CRD."),
    "completion": ("completion", "Print the completion script of a shell."),
    "version": ("version", "Print the versions of program and cluster."),
}
"""In the order of the help: the module in `jobset_gate.cli.commands` that has it, or another one, and what it does."""
_GROUPS: Final = dict.fromkeys(("group", "podgroup", "podgroups"), "groups")
_WIDEST: Final = 1000
"""Columns of help: as many as the terminal has."""
_DEMO: Final = "jobset_gate_demo"
"""Package of the extra `demo`."""


@dataclass(slots=True)
class GlobalOptions:
    """The options before the command."""

    debug: bool = False


class LazyGroup(TyperGroup):
    """Knows its commands by name and summary, and loads one when it is resolved."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=summary, rich_markup_mode=None))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Called to run a command, to print its help, and to complete its options. `help get` is `get --help`."""
        if args[:1] == ["help"]:
            if not args[1:]:
                typer.echo(ctx.get_help())
                raise typer.Exit
            args = [*args[1:], "--help"]
        name, command, rest = super().resolve_command(ctx, [_GROUPS.get(args[0], args[0]), *args[1:]])
        return name, _load(name, ctx.find_root().info_name) if name in COMMANDS else command, rest


def build(program: str, options: GlobalOptions) -> typer.Typer:
    """The application; `program` is what its help calls it."""
    if COMPLETION in os.environ:
        shells.completion_init()  # type: ignore[attr-defined]  # typer lists nothing of its own there
    app = typer.Typer(
        name=program,
        cls=LazyGroup,
        help=ABOUT,
        epilog=CODES,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST},
    )

    @app.callback()
    def before_command(
        version: Annotated[  # noqa: ARG001 - its callback does the work
            bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
        ] = False,
        debug: Annotated[
            bool, typer.Option("--debug", help="Show tracebacks of errors (or set JOBSET_GATE_DEBUG=1).")
        ] = False,
    ) -> None:
        options.debug = options.debug or debug

    return app


def command_tree(program: str) -> Any:
    """The whole program as click commands, all of them loaded: for the reference, and for tests of documents."""
    root: Any = typer.main.get_command(build(program, GlobalOptions()))
    root.commands = {name: _load(name, program) for name in COMMANDS}
    return root


def _load(name: str, program: str) -> Any:
    try:
        with _quick_imports():
            place = COMMANDS[name][0]
            module = import_module(place if "." in place else f"jobset_gate.cli.commands.{place}")
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith(_DEMO):
            raise
        raise CommandError(
            "the demo and its cluster are not installed; pip install 'jobset-gate[demo]' adds them"
        ) from missing
    command = typer.main.get_group(module.app).commands[name]
    command.short_help = COMMANDS[name][1]
    _name_program(command, program)
    return command


@contextmanager
def _quick_imports() -> Iterator[None]:
    """Leaves out what takes a quarter of the imports' time, and is of no use to us.

    Garbage collection finds nothing; aiohttp reads the system's CAs, twice, and no connection of ours trusts them: each
    has those of its kubeconfig.
    """
    before = dict(os.environ)
    os.environ.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        os.environ.clear()
        os.environ.update(before)


def _name_program(command: Any, program: str) -> None:
    """In the examples of a command and of those within it."""
    command.epilog = (command.epilog or "").replace("{program}", program)
    for inner in getattr(command, "commands", {}).values():
        _name_program(inner, program)


def client_version() -> str:
    """Of this program."""
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version("jobset-gate"))
    except metadata.PackageNotFoundError:
        return "(not installed: run from its source)"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jobset-gate {client_version()}")
        raise typer.Exit
