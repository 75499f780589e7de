"""Which tests take turns on one worker, and which of these have a control plane of their own.

All other tests share one plane, or one with kube-scheduler, from any worker: their namespaces keep them apart. JobSet's
CRD with our field and the CRDs of pod groups are there from the start, and stay.
"""

from typing import Final

CLUSTER: Final = "cluster"
"""Tests that change what a whole cluster shares: CRDs, webhook configurations and releases of fixed names."""
SCHEDULED_CLUSTER: Final = "cluster with kube-scheduler"
"""Likewise, and some to which a scheduler makes no difference: neither lane lasts much longer than the other."""
NATIVE: Final = "native gangs"
OUTAGE: Final = "outage"
LANES: Final = {
    CLUSTER: (
        "tests/chart/test_helm_test.py",
        "tests/flow/podgroups/test_crds.py",
        "tests/flow/test_crd",
        "tests/flow/test_rights.py",
        "tests/flow/test_rights_limited",
        "tests/flow/test_rights_refused.py",
        "tests/flow/webhook/test_rolling_update.py",
        "tests/unit/cli/test_controller.py",
        "tests/unit/cli/test_doctor.py",
        "tests/unit/cli/test_doctor_sources.py",
        "tests/unit/cli/test_install_crd_field.py",
        "tests/unit/cli/test_webhook.py",
    ),
    SCHEDULED_CLUSTER: (
        "tests/chart/test_group_crds.py",
        "tests/chart/test_hooks.py",
        "tests/chart/test_installed.py",
        "tests/flow/test_rights_groups",
    ),
    NATIVE: ("tests/flow/podgroups/test_native.py", "tests/flow/test_rights_native.py"),
    OUTAGE: ("tests/contract/kube/test_outage.py",),
    "browser": ("tests/page/",),
}
BY_FILE: Final = ("tests/chart/", "tests/repo/")
"""Their files keep what they have rendered or read."""
FIRST: Final = (
    "tests/flow/test_rights.py",
    "tests/flow/test_kills.py",
    "tests/flow/test_channels.py",
    "tests/flow/test_stories.py",
    "tests/flow/webhook/test_rolling_update.py",
    "tests/flow/webhook/test_ca_rotation.py",
)
"""Those that last longest begin early, so that no worker is alone with one of them at the end."""


def lane(nodeid: str) -> str | None:
    """The lane of a test that takes turns."""
    return next((name for name, paths in LANES.items() if nodeid.startswith(paths)), None)


def scope(nodeid: str) -> str:
    """Tests of one scope run on one worker, one after the other."""
    return lane(nodeid) or (nodeid.partition("::")[0] if nodeid.startswith(BY_FILE) else nodeid)


def place(nodeid: str) -> tuple[bool, str]:
    """Where it stands in the order of all tests. Those of a lane stand together, those of the longest one first."""
    its = lane(nodeid)
    return not (its in {CLUSTER, SCHEDULED_CLUSTER} or nodeid.startswith(FIRST)), its or "~"
