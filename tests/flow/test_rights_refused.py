"""What is not theirs is refused to webhook and controller: other people's Secrets, webhooks, pods, and ways to more."""

from contextlib import AsyncExitStack

import pytest

from tests.flow import rights
from tests.flow.installed import CONTROLLER, RELEASE, WEBHOOK, installed
from tests.flow.rights import Right
from tests.plane.planes import Real
from webhook.registration import MUTATING, VALIDATING

pytestmark = pytest.mark.real

OWN = "(the release's)"
ADMISSION = "admissionregistration.k8s.io"

BOTH = (WEBHOOK, CONTROLLER)
NOT_THEIRS = [
    # Secrets: none but the one of the CA, which only the webhook may read.
    (WEBHOOK, Right("", "secrets", "get", "other-client", OWN)),
    (WEBHOOK, Right("", "secrets", "list", "", OWN)),
    (WEBHOOK, Right("", "secrets", "get", f"{RELEASE}-ca", "kube-system")),
    (CONTROLLER, Right("", "secrets", "get", f"{RELEASE}-ca", OWN)),
    # Webhook configurations: its own, each of its kind, and those as they are.
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", "other-client")),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", VALIDATING)),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "delete", MUTATING)),
    (CONTROLLER, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", MUTATING)),
    # Pods: the webhook sees what it is sent, the controller annotates and tells.
    *[(WEBHOOK, Right("", "pods", verb, "", "default")) for verb in ("get", "list", "watch", "create", "patch")],
    *[(CONTROLLER, Right("", "pods", verb, "", "default")) for verb in ("create", "update", "deletecollection")],
    *[(CONTROLLER, Right("", f"pods/{sub}", "create", "", "default")) for sub in ("exec", "binding", "eviction")],
    # Whose a token is: only where the status page is on.
    (CONTROLLER, Right("authentication.k8s.io", "tokenreviews", "create")),
    # Ways to get more.
    *[
        (account, Right("rbac.authorization.k8s.io", "clusterroles", verb, RELEASE))
        for account in BOTH
        for verb in ("escalate", "bind", "create", "update")
    ],
    *[(one, Right("", "serviceaccounts/token", "create", CONTROLLER, OWN)) for one in BOTH],
    *[(one, Right("", "users", "impersonate", "admin")) for one in BOTH],
]
"""What no documented right comes near; any other right that is needless is found by test_rights.py."""


async def test_what_is_not_theirs_is_refused(real_plane: Real) -> None:
    wrongly: list[str] = []
    async with AsyncExitStack() as stack:
        release = await stack.enter_async_context(installed(real_plane))
        own = release.namespace
        asking = {one: await stack.enter_async_context(release.client(one)) for one in (CONTROLLER, WEBHOOK)}
        for account, right in NOT_THEIRS:
            if await rights.may(asking[account], right.within(OWN, own)):
                wrongly.append(f"{account} may {right}")
        assert wrongly == []
        # The question is understood: what they do have is reported, too.
        assert await rights.may(asking[WEBHOOK], Right("", "secrets", "get", f"{RELEASE}-ca", own))
        assert await rights.may(asking[CONTROLLER], Right("", "pods", "patch", "any", "default"))
