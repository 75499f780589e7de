"""What an API server's refusal means for a gang."""

from jobset_gate.kube.errors import Forbidden, Invalid


def is_namespace_terminating(refused: Exception) -> bool:
    """Whether it was refused because the namespace goes, and its gangs with it (A10)."""
    if not isinstance(refused, Forbidden):
        return False
    causes = refused.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def is_uid_mismatch(refused: Exception) -> bool:
    """Whether a patch of metadata was refused because the object of that name has another UID."""
    if not isinstance(refused, Invalid):
        return False
    causes = refused.details.get("causes") or ()
    return any(cause.get("field") == "metadata.uid" for cause in causes)
