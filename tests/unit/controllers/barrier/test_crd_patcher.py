"""The JobSet CRD without the right to patch it: reported, and tried again later (A2)."""

from controllers.barrier.crd_patcher import FORBIDDEN, FORBIDDEN_RETRY_SECONDS, CrdReconciler
from jobset_gate.kube.errors import Forbidden
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_client import MemoryClient


async def test_without_the_right_to_patch_the_crd_is_tried_again_in_minutes(
    memory: MemoryClient, api_calls: CallBlocker
) -> None:
    api_calls.fail = lambda _: Forbidden(403)
    outcomes: list[str] = []
    assert await CrdReconciler(memory.client, outcomes.append).reconcile("jobsets") == FORBIDDEN_RETRY_SECONDS
    assert outcomes == [FORBIDDEN]
