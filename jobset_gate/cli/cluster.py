"""Which cluster a command speaks to: the options for it, and what they lead to."""

from dataclasses import dataclass
from typing import Annotated

from jobset_gate.cli.options import option
from jobset_gate.kube import access


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """As they were given; None where they were not."""

    kubeconfig: Annotated[
        str | None,
        option(
            "--kubeconfig",
            "FILE",
            "The kubeconfig to use; otherwise that of the pod we run in, $KUBECONFIG, or ~/.kube/config.",
        ),
    ] = None
    context: Annotated[str | None, option("--context", "NAME", "The context of the kubeconfig to use.")] = None

    async def load_access(self) -> access.Access:
        """Raises InvalidKubeConfig."""
        return await access.load_access(self.kubeconfig, self.context)

    def given(self) -> list[tuple[str, str]]:
        """Those that kubectl takes, too, with their values."""
        pairs = (("--context", self.context), ("--kubeconfig", self.kubeconfig))
        return [(name, value) for name, value in pairs if value]
