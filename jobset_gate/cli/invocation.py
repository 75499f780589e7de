"""By which name and with which options this program was called, so that printed commands reach the same cluster."""

import re
import shlex
from dataclasses import dataclass, field
from typing import Final

import msgspec

from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.explain.model import Explanation

_OWN: Final = re.compile(r"^(?:kubectl )?jobset-gate(?= |$)")
_QUOTED: Final = re.compile(r"`((?:kubectl|jobset-gate) [^`]*)`")
_REST: Final = re.compile(r" (?:--|\||>|&&|;) ")
"""What stands behind it is none of that command's options."""
_NAMES_NAMESPACE: Final = re.compile(r" (?:-n|-A|--namespace|--all-namespaces)\b")
_TAKES_NAMESPACE: Final = re.compile(r"^\S.* doctor\b")
"""Our commands that take a namespace and do not name one."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """`namespace` as it was given; None where it was not."""

    program: str = "kubectl jobset-gate"
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    namespace: str | None = None

    def command(self, command: str) -> str:
        """A command of ours or of kubectl's as the user has to type it."""
        own = _OWN.match(command)
        if own:
            command = self.program + command[own.end() :]
        elif not command.startswith("kubectl "):
            return command
        rest = _REST.search(command)
        head, tail = (command[: rest.start()], command[rest.start() :]) if rest else (command, "")
        return head + "".join(f" {option} {shlex.quote(value)}" for option, value in self._options(head, own)) + tail

    def rewrite_commands(self, words: str) -> str:
        """Words with commands between back-ticks."""
        return _QUOTED.sub(lambda found: f"`{self.command(found[1])}`", words)

    def rewrite_explanation(self, it: Explanation) -> Explanation:
        """The same, with commands for this user."""
        missing = tuple(msgspec.structs.replace(one, command=self.command(one.command)) for one in it.missing)
        commands = tuple(map(self.command, it.commands))
        return msgspec.structs.replace(it, missing=missing, commands=commands)

    def _options(self, head: str, own: re.Match[str] | None) -> list[tuple[str, str]]:
        """Behind the command, where both kubectl and its plugins take them."""
        namespace = (
            self.namespace if own and _TAKES_NAMESPACE.match(head) and not _NAMES_NAMESPACE.search(head) else None
        )
        given = [*([("-n", namespace)] if namespace else []), *self.cluster.given()]
        return [(option, value) for option, value in given if f" {option} " not in head]
