"""jobset-gate: a start barrier for Kubernetes JobSets.

`from jobset_gate import gate` puts a gate on a JobSet or a Job from Python; nothing else here is public.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobset_gate.sdk import gate as gate
    from jobset_gate.sdk import gate_annotations as gate_annotations

__all__ = ["gate", "gate_annotations"]


def __getattr__(name: str) -> Any:
    """Imports what is public when it is used: the command line begins with this package, too."""
    if name in __all__:
        from jobset_gate import sdk  # noqa: PLC0415 - see above

        return getattr(sdk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
