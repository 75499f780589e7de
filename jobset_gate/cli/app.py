"""The commands, put together. Nothing heavy is imported before a command runs: `--help` has to be quick."""

from dataclasses import dataclass
from typing import Annotated

import typer

from jobset_gate.cli.commands import (
    completion,
    controller,
    demo,
    describe,
    doctor,
    get,
    groups_ungate,
    install_crd_field,
    release,
    render,
    timeline,
    validate,
    wait,
    watch,
    webhook,
    why,
)

ABOUT = "A start barrier for Kubernetes JobSets: no pod of a gang starts its work before every pod has started."
CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out."


@dataclass(slots=True)
class GlobalOptions:
    """What the options before the command say."""

    debug: bool = False


def build(program: str, state: GlobalOptions) -> typer.Typer:
    """The application; `program` is what its help calls it."""
    # Markup would import rich for each help text: 150 ms that nobody wants to wait for.
    app = typer.Typer(
        name=program,
        help=ABOUT,
        epilog=CODES,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(
        version: Annotated[  # noqa: ARG001 - its callback does the work
            bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
        ] = False,
        debug: Annotated[
            bool, typer.Option("--debug", help="Show tracebacks of errors (or set JOBSET_GATE_DEBUG=1).")
        ] = False,
    ) -> None:
        state.debug = state.debug or debug

    reading = (get, why, describe, wait, watch, timeline, doctor)
    for command in (
        demo,
        render,
        validate,
        *reading,
        release,
        groups_ungate,
        webhook,
        controller,
        install_crd_field,
        completion,
    ):
        command.register(app, program)
    return app


def _version(asked: bool) -> None:
    if not asked:
        return
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - only who asks pays for it

    try:
        typer.echo(f"jobset-gate {version('jobset-gate')}")
    except PackageNotFoundError:
        typer.echo("jobset-gate (not installed: run from its source)")
    raise typer.Exit
