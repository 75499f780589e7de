"""G2: while the pod webhook cannot be reached, a group's pods are refused, and not let in unheld.

Which pods the API server sends to it, and so refuses then, is in tests/contract/webhook/test_pod_conditions.py.
"""

from urllib.parse import urlsplit

from jobset_gate.kube.resources import JOBS
from tests.fakes.admission_server import BUNDLE
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from webhook.server import serve


async def test_a_job_makes_its_pods_once_the_webhook_is_back(make_stage: MakeGroupEnvironment) -> None:
    """Refused pods are no failed pods: not even a Job with no retries fails."""
    async with make_stage(controller=False) as stage:
        assert stage.webhook is not None
        await stage.webhook.stop()
        await stage.apply(manifests.job("w", "g", 2))
        assert "pods.jobset-gate.dev" in await stage.until_event("w", "FailedCreate")
        again = await serve(stage.settings, tls=BUNDLE.serving, port=urlsplit(stage.webhook.url).port or 0)
        try:
            made = await stage.until(lambda pods: len(pods) == 2)
        finally:
            await again.stop()
        assert all(map(gated, made))
        assert "failed" not in (await stage.client.get(JOBS, "w", stage.namespace))["status"]
