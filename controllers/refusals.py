"""What an API server's refusal means for a gang."""

from jobset_gate.kube.errors import Forbidden


def terminating(refused: Exception) -> bool:
    """Whether it was refused because the namespace goes, and its gangs with it (A10)."""
    if not isinstance(refused, Forbidden):
        return False
    causes = refused.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
