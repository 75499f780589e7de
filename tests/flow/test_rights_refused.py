"""What is not theirs is refused to webhook and controller: other people's Secrets, webhooks, pods, and ways to more."""

from contextlib import AsyncExitStack

import pytest

from controllers.podgroups import crds
from jobset_gate import names
from tests.flow import rights
from tests.flow.installed import CONTROLLER, RELEASE, WEBHOOK, installed
from tests.flow.rights import Right
from tests.plane.planes import Real
from webhook.registration import MUTATING, VALIDATING

pytestmark = pytest.mark.real

OWN = "(the release's)"
ADMISSION = "admissionregistration.k8s.io"

NOT_THEIRS = [
    # Secrets: none but the one of the CA, which only the webhook may read.
    (WEBHOOK, Right("", "secrets", "get", "other-client", OWN)),
    (WEBHOOK, Right("", "secrets", "list", "", OWN)),
    (WEBHOOK, Right("", "secrets", "create", "other-client", OWN)),
    (WEBHOOK, Right("", "secrets", "delete", f"{RELEASE}-ca", OWN)),
    (WEBHOOK, Right("", "secrets", "get", f"{RELEASE}-ca", "kube-system")),
    (CONTROLLER, Right("", "secrets", "get", f"{RELEASE}-ca", OWN)),
    (CONTROLLER, Right("", "secrets", "list", "", "kube-system")),
    # Webhook configurations: its own two, each of its kind, and those as they are.
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", "other-client")),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", VALIDATING)),
    (WEBHOOK, Right(ADMISSION, "validatingwebhookconfigurations", "patch", "other-client")),
    (WEBHOOK, Right(ADMISSION, "validatingwebhookconfigurations", "patch", MUTATING)),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "list")),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "create", "another")),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "delete", MUTATING)),
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "delete", names.POD_WEBHOOK)),
    # Of start groups, which are not among the sources: nothing.
    (WEBHOOK, Right(ADMISSION, "mutatingwebhookconfigurations", "get", names.BARRIER_POD_WEBHOOK)),
    (CONTROLLER, Right(ADMISSION, "mutatingwebhookconfigurations", "patch", MUTATING)),
    # Pods and JobSets: the webhook sees what it is sent, the controller annotates and tells.
    *[(WEBHOOK, Right("", "pods", verb, "", "default")) for verb in ("get", "list", "watch", "create", "patch")],
    (WEBHOOK, Right("jobset.x-k8s.io", "jobsets", "get", "", "default")),
    (WEBHOOK, Right("", "configmaps", "get", "", "default")),
    *[(CONTROLLER, Right("", "pods", verb, "", "default")) for verb in ("create", "update", "deletecollection")],
    *[(CONTROLLER, Right("", f"pods/{sub}", "create", "", "default")) for sub in ("exec", "binding", "eviction")],
    (CONTROLLER, Right("", "pods/log", "get", "", "default")),
    *[
        (CONTROLLER, Right("jobset.x-k8s.io", "jobsets", verb, "", "default"))
        for verb in ("create", "update", "delete")
    ],
    *[(CONTROLLER, Right("batch", "jobs", verb, "", "default")) for verb in ("create", "update", "delete")],
    # Pod groups: their kinds by name, none of the scheduler's own unless that is switched on.
    *[(CONTROLLER, Right("", "nodes", verb, "node")) for verb in ("update", "patch", "delete")],
    *[(CONTROLLER, Right(names.PLUGINS_GROUP, "podgroups", verb, "", "default")) for verb in ("create", "delete")],
    (CONTROLLER, Right("scheduling.k8s.io", "podgroups", "create", "", "default")),
    # Whose a token is: only where the status page is on.
    (CONTROLLER, Right("authentication.k8s.io", "tokenreviews", "create")),
    (CONTROLLER, Right("authorization.k8s.io", "subjectaccessreviews", "create")),
    (CONTROLLER, Right("apiextensions.k8s.io", "customresourcedefinitions", "create", "a_users.example.com")),
    *[(CONTROLLER, Right("apiextensions.k8s.io", "customresourcedefinitions", "delete", crd)) for crd in crds.GROUPS],
    *[(CONTROLLER, Right("apps", plural, "patch", "", "default")) for plural in ("statefulsets", "replicasets")],
    (CONTROLLER, Right("apiextensions.k8s.io", "customresourcedefinitions", "patch", "jobs.example.com")),
    (CONTROLLER, Right("coordination.k8s.io", "leases", "update", "other-client", OWN)),
    (CONTROLLER, Right("coordination.k8s.io", "leases", "create", "", "kube-node-lease")),
    # Ways to get more.
    *[
        (account, Right("rbac.authorization.k8s.io", "clusterroles", verb, RELEASE))
        for account in (WEBHOOK, CONTROLLER)
        for verb in ("escalate", "bind", "create", "update")
    ],
    *[(one, Right("", "serviceaccounts/token", "create", CONTROLLER, OWN)) for one in (WEBHOOK, CONTROLLER)],
    *[(one, Right("", "users", "impersonate", "admin")) for one in (WEBHOOK, CONTROLLER)],
    *[(one, Right("", "nodes", "get", "node")) for one in (WEBHOOK, CONTROLLER)],
]


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
