"""What the queue holds: which gang to look at, never what happened to it."""

from typing import NamedTuple


class GangKey(NamedTuple):
    """A gang, by its JobSet's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def log_fields(self) -> dict[str, str]:
        """How log lines name the gang."""
        return {"namespace": self.namespace, "jobset": self.name}
