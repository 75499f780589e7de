"""docs/reference/commands.md: every command with its arguments and options, as the program itself has them."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from docs.make import exits
from docs.make.markdown import block, code, page, paragraph, table
from jobset_gate.cli.app import ABOUT, command_tree
from jobset_gate.cli.cluster import ClusterOptions

PROGRAM: Final = "jobset-gate"
_CLUSTER: Final = {it.name for it in fields(ClusterOptions)}
_CLUSTER_TITLE: Final = "Options of every command that asks a cluster"
_CLUSTER_LINK: Final = f"And the [{_CLUSTER_TITLE.lower()}](#{_CLUSTER_TITLE.lower().replace(' ', '-')})."
_DEFAULT: Final = re.compile(r"\[default: ([^\];]*)")


def text() -> str:
    """The page."""
    whole = command_tree(PROGRAM)
    context = whole.make_context(PROGRAM, [], resilient_parsing=True)
    commands = list(_commands(whole, context))
    return page(
        "Commands",
        "`jobset_gate/cli/commands/`",
        paragraph(ABOUT),
        paragraph(
            "`kubectl jobset-gate` is the same program. Every command has `--help`, or `-h`. "
            "[How they end](exit-codes.md); [the JSON that they print](json.md)."
        ),
        table(["command", "what it does"], [(_link(it), _short(it[0])) for it in commands]),
        "## Before the command",
        _options(whole, context),
        f"## {_CLUSTER_TITLE}",
        paragraph("As in kubectl: which cluster and user to use, and what counts instead of the kubeconfig."),
        _options(command_tree(PROGRAM).commands["why"], context, shared=True),
        *(_section(*it) for it in commands),
        exits.closing(),
    )


def _commands(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Each command that does something, with its context, by name."""
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        inside = bool(getattr(command, "commands", None))
        if not inside or command.invoke_without_command:
            yield command, inner
        if inside:
            yield from _commands(command, inner)


def _section(command: Any, context: Any) -> str:
    example = (command.epilog or "").removeprefix("Example: ")
    arguments = [it for it in command.params if it.param_type_name == "argument"]
    parts = [
        f"## {_name(context)}",
        block(f"{context.command_path} [OPTIONS] {' '.join(_metavar(it) for it in arguments)}".rstrip(), "text"),
        *(paragraph(it) for it in re.split(r"\n\s*\n", command.help or "")),
        _arguments(arguments),
        _options(command, context),
        _CLUSTER_LINK if {it.name for it in command.params} >= _CLUSTER else "",
        f"For example:\n\n{block(example, 'sh')}" if example else "",
    ]
    return "\n\n".join(it for it in parts if it)


def _arguments(arguments: list[Any]) -> str:
    rows = [(code(_metavar(it)), it.help or "") for it in arguments]
    return table(["argument", "meaning"], rows) if rows else ""


def _options(command: Any, context: Any, *, shared: bool = False) -> str:
    """`shared`: those of every command that asks a cluster, or else the others."""
    rows = []
    for it in command.params:
        if it.param_type_name != "option" or it.hidden or (it.name in _CLUSTER) is not shared:
            continue
        left, right = it.get_help_record(context)
        rows.append((code(left), _default(right), it.help or ""))
    return table(["option", "default", "meaning"], rows) if rows else ""


def _default(shown: str) -> str:
    """As the help shows it behind the sentence."""
    found = _DEFAULT.search(shown)
    return code(re.sub(r"^\((.*)\)$", r"\1", found[1])) if found else ""


def _metavar(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    name = name if argument.required else f"[{name}]"
    return name if argument.nargs == 1 else f"{name}..."


def _name(context: Any) -> str:
    return str(context.command_path).removeprefix(f"{PROGRAM} ")


def _link(it: tuple[Any, Any]) -> str:
    name = _name(it[1])
    return f"[`{name}`](#{name.replace(' ', '-')})"


def _short(command: Any) -> str:
    return str(command.short_help or (command.help or "").split("\n\n")[0])
