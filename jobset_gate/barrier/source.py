"""What distinguishes one kind of workload whose pods start as a gang: the columns of the table in `sources/`.

The rules get a row with each snapshot and take kinds and names from it, so that they hold for every source.
"""

import msgspec

from jobset_gate import names


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of workload."""

    name: str
    """The word for it in settings, metrics, logs and on the command line."""
    api_version: str
    kind: str
    gated: str
    """Value of the label jobset-gate.dev/gated on its Jobs and pods."""
    config_map_suffix: str
    """Suffix of the name of a gang's ConfigMap; no suffix ends with another source's."""
    stream: str
    """First part of its paths on the gate stream, behind the version (A6)."""
    uid_label: str
    """Label of its pods with the workload's UID, the first part of a generation."""
    attempt_label: str | None
    """Label of its pods with the restart attempt; None: a workload has one attempt, 0."""

    controller: str
    """Value of spec.managedBy that means the same as none."""
    has_config_field: bool
    """Its spec has a groupSchedulingConfig; without one the annotation is the only place (A2)."""
    has_targets: bool
    """It has several templates, and targetReplicatedJobs may name some of them."""
    counts_resumptions: bool
    """A new epoch begins when it is resumed, since its template cannot change when it is suspended (K4)."""
    pods_label: str
    """Label of its pods with the workload's name, for kubectl."""
    gates_pods: bool = False
    """The webhook puts the barrier into single pods, so that nothing but the pods is the workload, and a verdict is
    addressed to one pod (K3, K5)."""
    marks_templates: bool = False
    """Of those: a kind of workload makes the pods, and the webhook writes into the metadata of its pod templates which
    of them are gated, and their config (K3)."""
    keeps_attempt: bool = False
    """Of those: the gang's name ends with the UID of the pods' owner, and its ConfigMap records the attempt, its
    members and the condition, since no other object could (K5, K7)."""
    slot_words: tuple[str, str] | None = None
    """What people call the pod of index 0, and the word before the number of any other; None: its number alone."""
    pods_creator: str = "Job"
    """Kind of the objects that create its pods; "": of any, named by the pods."""

    @property
    def resource(self) -> str:
        """The word for the kind in our commands."""
        return self.name if self.gates_pods else self.kind.lower()

    @property
    def shares_condition(self) -> bool:
        """Its gangs are parts of one object, whose one condition counts them (K7)."""
        return self.gates_pods and not self.keeps_attempt

    @property
    def plural(self) -> str:
        """The kind as it stands in URLs and in rules of webhooks."""
        return f"{self.kind.lower()}s"

    @property
    def restarts(self) -> bool:
        """Whether a workload may restart as a whole, by a failurePolicy of its own."""
        return self.attempt_label is not None

    def is_managed_elsewhere(self, manager: object) -> bool:
        """Whether this spec.managedBy names another controller, as of another cluster."""
        return manager not in (None, "", self.controller)

    def shown_name(self, workload: str) -> str:
        """The workload's name for people: without the UID of the pods' owner; of a leader pod `NAME/INDEX`."""
        if self.keeps_attempt:
            return workload.partition(".")[0]
        return "/".join(name_and_index(workload)) if self.gates_pods else workload

    def pods_labels(self, workload: str) -> str:
        """The labels of the gang's pods that their own controller gives them, for kubectl."""
        if self.shares_condition:
            name, index = name_and_index(workload)
            return f"{self.pods_label}={name},{names.LWS_GROUP_INDEX}={index}"
        return f"{self.pods_label}={self.shown_name(workload)}"

    def pods_selector(self, workload: str) -> str:
        """Label selector of the gang's pods; where pods are gated one by one, also of those of other owners."""
        labels = self.pods_labels(workload)
        return f"{labels},!{names.GATED}" if self.keeps_attempt else f"{names.GATED}={self.gated},{labels}"

    def shown_index(self, index: int) -> str:
        """How people call the slot of this completion index."""
        if self.slot_words is None:
            return str(index)
        first, others = self.slot_words
        return f"{others} {index}" if index else first

    def config_map_name(self, workload: str) -> str:
        """Name of the gang's ConfigMap."""
        return workload + self.config_map_suffix


def name_and_index(leader: str) -> tuple[str, str]:
    """Name of the LeaderWorkerSet, and index of the group, of a leader pod of this name."""
    name, _, index = leader.rpartition("-")
    return name, index
