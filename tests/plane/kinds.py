"""CRDs on a plane that is starting: its garbage collector then knows them from the beginning."""

import asyncio
import time

from controllers.barrier import crd_patcher
from controllers.podgroups import crds
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, POD_GROUPS
from jobset_gate_demo.fake import jobset_crd
from tests.fakes.eventually import PATIENCE
from tests.plane.admin import Admin


def install_pod_groups(admin: Admin) -> None:
    """Returns when all three kinds are served."""
    for group in POD_GROUPS:
        admin.must("POST", f"{CRDS.path()}?fieldManager={crds.MANAGER}", crds.manifest(group))
    deadline = time.monotonic() + PATIENCE
    for resource in POD_GROUPS.values():
        while admin.request("GET", resource.path())[0] != 200:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{resource.plural}.{resource.group} are not served")
            time.sleep(0.05)  # at start-up there is nothing to be woken by


def install_all(admin: Admin) -> None:
    """JobSet with our field as well: tests that share a plane neither install nor remove a kind that others use."""
    install_pod_groups(admin)
    asyncio.run(_install_jobset(Access(server=f"https://127.0.0.1:{admin.port}", ssl=admin.ssl)))


async def _install_jobset(access: Access) -> None:
    async with Client(access, user_agent="test") as client:
        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
