"""Where a pod or Job belongs: its gang, and its slot in it."""

from typing import NamedTuple


class Slot(NamedTuple):
    """Gang and slot of a pod or Job, as its labels and its controller owner say (A4)."""

    source: str
    gang: str
    """Name of the workload."""
    workload_uid: str
    """"" if nothing proves that it belongs to that workload."""
    replicated_job: str
    job_index: int
    attempt: int
