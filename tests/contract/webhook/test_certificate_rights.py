"""What the certificate controller reports where a right is missing, and that a trusted webhook stays ready.

That the chart's rights are enough: tests/flow/test_rights.py.
"""

import pytest

from jobset_gate.kube.resources import MUTATING_WEBHOOKS, SECRETS, Resource
from tests.contract.webhook.test_certificate_controller import DAY
from tests.fakes.certificates import SECRET, installation
from tests.fakes.faults import ALWAYS, Match
from tests.plane.embedded import Embedded


@pytest.mark.parametrize(
    ("resource", "verbs", "said"),
    [
        (SECRETS, ("get", "create", "patch"), "there is no certificate yet; 403 "),
        (SECRETS, ("create", "patch"), f"; Secret default/{SECRET} cannot be written: 403 "),
        (MUTATING_WEBHOOKS, ("get", "patch"), "the webhook configurations have not been read yet; 403 "),
        (MUTATING_WEBHOOKS, ("patch",), "-default: has no caBundle; the caBundle cannot be written: 403"),
    ],
    ids=["Secret read", "Secret written", "configurations read", "caBundle written"],
)
async def test_what_it_may_not_do_is_reported_until_it_may_and_a_trusted_webhook_stays_ready(
    embedded_plane: Embedded, resource: Resource, verbs: tuple[str, ...], said: str
) -> None:
    """Else all replicas would leave the Service at once, and every gated JobSet would be refused."""
    async with (
        embedded_plane.client() as admin,
        embedded_plane.client("limited") as client,
        installation(admin, "default") as installed,
    ):
        refused = embedded_plane.faults.fail(Match(resource, verbs, agent="limited"), status=403, times=ALWAYS)
        replica = installed.replica(client)
        assert said in (await replica.reconcile() or "")
        assert (replica.number("jobset_gate_certificate_check_failures_total") or 0) > 0
        refused.cancel()
        assert await replica.reconcile() is None
        embedded_plane.faults.fail(Match(MUTATING_WEBHOOKS, ("get",), agent="limited"), status=403, times=ALWAYS)
        assert await replica.reconcile() is None
        installed.now.forward(8 * DAY)
        assert (await replica.reconcile() or "").startswith("the serving certificate is valid from")
