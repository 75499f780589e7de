"""What the runner knows of the cluster and tells the scenarios, by one file."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

ENV: Final = "JOBSET_GATE_E2E_ENVIRONMENT"
"""The environment variable that names the file."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A cluster with JobSet and jobset-gate in it."""

    kubeconfig: str
    kind: str
    """The name of the kind cluster whose nodes are containers of the docker at hand; "" for any other cluster."""
    image: str
    """Of webhook and controller."""
    small_image: str
    """With a shell: what barriers run, and the scenarios' main containers."""
    reports: str
    """The folder for what is known of failed scenarios."""
    steady_node: dict[str, str]
    """The node selector of webhook and controller."""
    stand_in: bool
    """JobSet is played."""

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, file: Path) -> Self:
        return cls(**json.loads(file.read_text()))

    @classmethod
    def from_env(cls) -> Self:
        """By the runner's environment variable. Raises KeyError when not started by the runner."""
        return cls.load(Path(os.environ[ENV]))
