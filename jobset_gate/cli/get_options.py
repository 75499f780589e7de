"""What a table of `get` is asked for, whatever it shows, and what is said of names that are not there."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import output


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """What the command line asks for."""

    names: Sequence[str] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    output: OutputFormat = OutputFormat.TABLE
    headers: bool = True
    watch: bool = False
    config: Path | None = None
    program: str = "kubectl jobset-gate"
    caller: Invocation = field(default_factory=Invocation)

    def check(self) -> None:
        """Raises Failed for what makes no sense."""
        if self.all_namespaces and self.names:
            raise CommandError("names are those of one namespace: leave out --all-namespaces", ExitCode.USAGE)

    def make_invocation(self, kubeconfig: str | None, context: str | None) -> Invocation:
        """Who asks, in the words of the command line."""
        return Invocation(self.program, kubeconfig, context, self.namespace)

    def namespace_filter(self, usual: str) -> str | None:
        """The namespace that is meant; None: all of them."""
        return None if self.all_namespaces else self.namespace or usual

    def selects(self, name: str) -> bool:
        """Whether that is one of the names, if any are given."""
        return not self.names or name in self.names

    def report_not_found(self, kind: str, there: Collection[str], namespace: str | None) -> bool:
        """Whether one of those that were named is not there; it is said which."""
        missing = [it for it in dict.fromkeys(self.names) if it not in there]
        for each in missing:
            output.err(f"error: {kind} {each} not found{namespace_suffix(namespace)}")
        return bool(missing)


def namespace_suffix(namespace: str | None) -> str:
    """For the end of a sentence."""
    return f" in namespace {namespace}" if namespace else ""
