"""The CRDs of pod groups on a plane that is starting: its garbage collector then knows them from the beginning."""

import time

from jobset_gate.kube.resources import CRDS, POD_GROUPS
from jobset_gate.podgroups import crds
from tests.plane.admin import Admin

_SERVED_WITHIN = 30.0


def install_pod_groups(admin: Admin) -> None:
    """Returns when all three kinds are served."""
    for group in POD_GROUPS:
        admin.must("POST", f"{CRDS.path()}?fieldManager={crds.MANAGER}", crds.manifest(group))
    deadline = time.monotonic() + _SERVED_WITHIN
    for resource in POD_GROUPS.values():
        while admin.request("GET", resource.path())[0] != 200:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{resource.plural}.{resource.group} are not served")
            time.sleep(0.05)  # at start-up there is nothing to be woken by
