"""UPDATE: templates keep the words that JobSet's typed webhook stored: applying again then changes nothing."""

from typing import Any, Final

from jobset_gate.objects import quantity
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.unstructured import ReplicatedJobView

KEYS: Final = ("metadata", "resources")
"""Members of the templates that Go writes out even when nobody has set them."""


def restore(edit: PatchBuilder, job: ReplicatedJobView, was: ReplicatedJobView) -> None:
    """Put `{}` back where the old template has it and the one to be stored has nothing, and equal amounts as they were.

    To JobSet's validator both are the same, so this is only about the stored words: without it the first
    `kubectl apply` or `kubectl replace` of an unchanged manifest would raise metadata.generation (A3).
    """
    now = edit.document["spec"]["replicatedJobs"][job.index]
    _walk(edit, list(job.job_path), now.get("template"), was.body.get("template"))


def _walk(edit: PatchBuilder, path: list[str | int], now: Any, was: Any) -> None:
    """`path` grows and shrinks on the way: a copy at each step would cost depth times width."""
    if isinstance(now, dict) and isinstance(was, dict):
        for key, value in was.items():
            there = now.get(key)
            if key in KEYS and value == {} and there is None:
                edit.set((*path, key), {})
            elif path[-1] in quantity.MAPS:
                if there != value and quantity.same(there, value):
                    edit.set((*path, key), value)
            else:
                _step(edit, path, key, there, value)
    elif isinstance(now, list) and isinstance(was, list):
        for index, (entry, before) in enumerate(zip(now, was, strict=False)):
            if _name(entry) == _name(before):
                _step(edit, path, index, entry, before)


def _step(edit: PatchBuilder, path: list[str | int], key: str | int, now: Any, was: Any) -> None:
    path.append(key)
    _walk(edit, path, now, was)
    path.pop()


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None
