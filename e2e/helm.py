"""Helm, as an operator runs it: one release of the chart of this checkout."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from e2e import commands
from tests.tools import catalog

CHART: Final = Path(__file__).parents[1] / "charts" / "jobset-gate"
WAIT_SECONDS: Final = 240


@cache
def program() -> str:
    """Helm 4: HELM4, that of the PATH, or that of `make tools`. Raises commands.Failed."""
    try:
        return str(catalog.helm(4))
    except catalog.ToolNotFound as missing:
        raise commands.CommandFailed(str(missing)) from missing


@dataclass(frozen=True, slots=True)
class HelmRelease:
    """One installation of the chart. Every method raises commands.Failed with Helm's words."""

    kubeconfig: str
    name: str
    namespace: str

    def exists(self) -> bool:
        found = json.loads(self._helm("list", "--output=json", "--filter", f"^{self.name}$"))
        return bool(found)

    def apply(self, values: Mapping[str, Any], chart: Path = CHART) -> None:
        """Installs or upgrades it, and returns when its pods are ready."""
        command = ("upgrade", "--install", self.name, str(chart), "--values=-")
        self._with_retries(*command, stdin=json.dumps(values))

    def test(self) -> str:
        """`helm test`: what its pods say."""
        return self._helm("test", self.name, "--logs", f"--timeout={WAIT_SECONDS}s", seconds=WAIT_SECONDS + 10)

    def remove(self) -> None:
        """Returns when it is gone, or was not there."""
        self._with_retries("uninstall", self.name, "--ignore-not-found")

    def _with_retries(self, *args: str, stdin: str | None = None) -> str:
        wait = ("--wait", f"--timeout={WAIT_SECONDS}s")
        return self._helm(*args, *wait, stdin=stdin, seconds=WAIT_SECONDS + 10)

    def _helm(self, *args: str, stdin: str | None = None, seconds: float = commands.SECONDS) -> str:
        where = ("--kubeconfig", self.kubeconfig, "--namespace", self.namespace)
        return commands.run(program(), *args, *where, stdin=stdin, seconds=seconds)


@contextmanager
def packaged(version: str) -> Iterator[Path]:
    """The chart of this checkout as a package of that version."""
    with tempfile.TemporaryDirectory() as folder:
        commands.run(program(), "package", str(CHART), "--version", version, "--destination", folder)
        (package,) = Path(folder).glob("*.tgz")
        yield package


def rendered(values: Mapping[str, Any], name: str, namespace: str) -> str:
    """What would be applied, as YAML; without a cluster."""
    command = (program(), "template", name, str(CHART), "--namespace", namespace, "--values=-")
    return commands.run(*command, stdin=json.dumps(values))
