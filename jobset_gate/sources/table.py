"""The table of sources: one row for each kind of workload."""

from collections.abc import Collection
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.barrier.source import Source

JOBSET: Final = Source(
    name="jobset",
    api_version=names.JOBSET_API_VERSION,
    kind="JobSet",
    gated=names.GATED_VALUE,
    config_map_suffix=names.CONFIG_MAP_SUFFIX,
    stream="gangs",
    uid_label=names.JS_UID,
    attempt_label=names.JS_RESTART_ATTEMPT,
    controller=names.JOBSET_CONTROLLER,
    has_config_field=True,
    has_targets=True,
    counts_resumptions=False,
    pods_label=names.JS_NAME,
)
JOB: Final = Source(
    name="job",
    api_version="batch/v1",
    kind="Job",
    gated=names.GATED_JOB,
    config_map_suffix=names.JOB_CONFIG_MAP_SUFFIX,
    stream="jobs",
    uid_label=names.JOB_CONTROLLER_UID,
    attempt_label=None,
    controller=names.JOB_CONTROLLER,
    has_config_field=False,
    has_targets=False,
    counts_resumptions=True,
    pods_label=names.JOB_NAME,
)
START_GROUP: Final = Source(
    name="startgroup",
    api_version="",
    kind="StartGroup",
    gated="",
    config_map_suffix=names.START_CONFIG_MAP_SUFFIX,
    stream="pods",
    uid_label="",
    attempt_label=None,
    controller="",
    has_config_field=False,
    has_targets=False,
    counts_resumptions=False,
    pods_label=names.START_GROUP,
    gates_pods=True,
    keeps_attempt=True,
    pods_creator="",
)
"""All pods of one name under one controller owner. Kind and API version of that owner stand in the snapshot."""
LWS: Final = Source(
    name="lws",
    api_version=names.LWS_API_VERSION,
    kind="LeaderWorkerSet",
    gated=names.GATED_LWS,
    config_map_suffix=names.LWS_CONFIG_MAP_SUFFIX,
    stream=START_GROUP.stream,
    uid_label="",
    attempt_label=None,
    controller="",
    has_config_field=False,
    has_targets=False,
    counts_resumptions=False,
    pods_label=names.LWS_NAME,
    gates_pods=True,
    marks_templates=True,
    slot_words=("leader", "worker"),
    pods_creator="StatefulSet",
)
"""One group of a LeaderWorkerSet: leader pod and workers. The name of the gang is that of the leader pod."""
SOURCES: Final = {source.name: source for source in (JOBSET, JOB, LWS, START_GROUP)}
"""All sources by name."""
TEMPLATE_SOURCES: Final = {name: source for name, source in SOURCES.items() if not source.gates_pods}
"""Those whose workloads have pod templates, into which the webhook puts the barrier."""
POD_SOURCES: Final = {name: source for name, source in SOURCES.items() if source.gates_pods}
"""Those into whose single pods it puts the barrier."""
WORKLOAD_SOURCES: Final = {name: it for name, it in SOURCES.items() if it.marks_templates or not it.gates_pods}
"""Those with a kind of workload of their own, which the webhook admits: it writes into its templates."""


def gated_selector(sources: Collection[str]) -> str:
    """Selects the gated Jobs and pods of these sources."""
    values = [source.gated for name, source in TEMPLATE_SOURCES.items() if name in sources]
    return f"{names.GATED}={values[0]}" if len(values) == 1 else f"{names.GATED} in ({','.join(values)})"


def config_map_name(key: GangKey) -> str:
    """Name of the gang's ConfigMap."""
    return SOURCES[key.source].config_map_name(key.name)
