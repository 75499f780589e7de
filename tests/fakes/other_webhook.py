"""Another mutating webhook in the same cluster: Kueue's, a mesh's, a policy engine's."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS
from tests.fakes.admission_server import BUNDLE, WEBHOOK_TIMEOUT, limited
from tests.fakes.loopback_server import LoopbackServer
from webhook.registration import configurations

Json = dict[str, Any]


@asynccontextmanager
async def another_webhook(
    client: Client, namespace: str, name: str, operations: Callable[[Json], list[Json]], *, rule: Json | None = None
) -> AsyncIterator[None]:
    """Called for every JobSet of the namespace, in the place that its name gives it; `operations` are its patch.

    `rule`: called for other objects.
    """

    async def answer(request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        patch = b64encode(json.dumps(operations(review["request"]["object"])).encode()).decode()
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    async with LoopbackServer(answer, BUNDLE.serving.context) as server:
        made = configurations(url=server.url, ca_bundle=BUNDLE.ca_bundle)[0]
        made["metadata"]["name"] = f"{name}-{namespace}"
        (hook,) = made["webhooks"]
        del hook["matchConditions"]
        if rule is not None:
            hook["rules"] = [rule]
        hook |= {"name": f"{name}.example.com", "timeoutSeconds": WEBHOOK_TIMEOUT}
        await client.create(MUTATING_WEBHOOKS, limited(made, namespace))
        try:
            yield
        finally:
            await client.delete(MUTATING_WEBHOOKS, made["metadata"]["name"])
