"""Jobs and CronJobs in manifests: where the config of their gangs belongs, and the Job that the webhook will see."""

from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.unstructured import Json, Path, as_map, format_path, nested
from jobset_gate.sources.objects import config_of
from jobset_gate.sources.table import JOB

TEMPLATE: Final[Path] = ("spec", "jobTemplate")
RENDERED: Final = "a CronJob is printed as it is, since each of its Jobs gets its barrier when it is created"
_HOLDER: Final[Path] = ("metadata", "annotations")
_SCHEDULED: Final = "00000000"
"""For the time that the CronJob controller appends to a CronJob's name."""


def is_job(value: Any) -> bool:
    """Of batch/v1."""
    return (nested(value, "apiVersion"), nested(value, "kind")) == (JOB.api_version, JOB.kind)


def is_cron_job(value: Any) -> bool:
    """Of batch/v1, too."""
    return (nested(value, "apiVersion"), nested(value, "kind")) == (JOB.api_version, "CronJob")


def gang_of(value: Any) -> Json | None:
    """The Job that asks for a gate: this one, or each that the CronJob creates; None for any other object."""
    if is_cron_job(value):
        template = as_map(nested(value, "spec", "jobTemplate"))
        name = f"{nested(value, 'metadata', 'name') or 'cron'}-{_SCHEDULED}"
        meta = template.get("metadata")
        value = {**template, "apiVersion": JOB.api_version, "kind": JOB.kind}
        value["metadata"] = {**meta, "name": name} if isinstance(meta, dict) else meta
    elif not is_job(value):
        return None
    return value if config_of(value).present else None


def why_not_read(value: Any, path: Path) -> str:
    """Why the config or annotation at `path` of a Job or CronJob has no effect; "": it has."""
    holder = (*TEMPLATE, *_HOLDER) if is_cron_job(value) else _HOLDER
    if path == (*holder, path[-1]):
        return ""
    if path[-1] == names.CONFIG_FIELD:
        return f"the config of a Job is the annotation {names.CONFIG} in {format_path(holder)}"
    return f"put it into {format_path(holder)}" if is_cron_job(value) else f"it is read in {format_path(holder)} alone"
