"""JobSet's own webhooks on 127.0.0.1: defaults on CREATE, immutability on UPDATE."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from jobset_gate import names
from jobset_gate.fake import certificates, manifests
from jobset_gate.fake.certificates import HOST
from jobset_gate.fake.jobset import admission_defaults, admission_rules
from jobset_gate.fake.objects import Json
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

MUTATE = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
VALIDATE = "/validate-jobset-x-k8s-io-v1alpha2-jobset"
MUTATING = "jobset-mutating-webhook-configuration"
VALIDATING = "jobset-validating-webhook-configuration"
LARGEST_BODY = 7 * 1024 * 1024
PROBE_SECONDS = 0.05
_FOR_EVER = 1e9  # idle connections are the API server's to close: in virtual time a minute passes at once

Review = Callable[[Json], Json]


class JobSetAdmission:
    """`start()`, `install(client)`, and the other way round: `uninstall(client)`, `stop()`."""

    def __init__(self) -> None:
        self._identity = certificates.localhost()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post(MUTATE, _handler(mutate))
        app.router.add_post(VALIDATE, _handler(validate))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, keepalive_timeout=_FOR_EVER)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0, ssl_context=self._identity.context)
        await site.start()
        self.url = f"https://{HOST}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def configurations(self) -> list[tuple[Resource, Json]]:
        """What to register; the names sort as the real ones do."""
        return [
            (MUTATING_WEBHOOKS, self._configuration(MUTATING, "mjobset.kb.io", MUTATE, ["CREATE"])),
            (VALIDATING_WEBHOOKS, self._configuration(VALIDATING, "vjobset.kb.io", VALIDATE, ["CREATE", "UPDATE"])),
        ]

    async def install(self, client: Client) -> None:
        """Register, in place of what an earlier run may have left."""
        for resource, body in self.configurations():
            try:
                await client.create(resource, body)
            except AlreadyExists:
                await client.delete(resource, body["metadata"]["name"])
                await client.create(resource, body)

    async def uninstall(self, client: Client) -> None:
        for resource, body in self.configurations():
            try:
                await client.delete(resource, body["metadata"]["name"])
            except NotFound:
                continue

    async def wait_in_force(self, client: Client, namespace: str) -> None:
        """Until the API server calls both webhooks: it learns of them a moment after they were registered."""
        probe = manifests.jobset("jobset-admission-probe", namespace)
        # The API server tells nobody when it has learned of a webhook: one has to ask.
        while (await client.create(JOBSETS, probe, dry_run=True))["spec"].get("startupPolicy") is None:  # noqa: ASYNC110
            await asyncio.sleep(PROBE_SECONDS)
        refused = manifests.jobset("jobset-admission-probe-" + "x" * admission_rules.LONGEST_NAME, namespace)
        while await _accepted(client, refused):  # noqa: ASYNC110 - as above
            await asyncio.sleep(PROBE_SECONDS)

    def _configuration(self, name: str, webhook: str, path: str, operations: list[str]) -> Json:
        rule = {
            "apiGroups": [names.JOBSET_GROUP],
            "apiVersions": [names.JOBSET_VERSION],
            "operations": operations,
            "resources": [JOBSETS.plural],
        }
        return {
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": webhook,
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "clientConfig": {
                        "url": self.url + path,
                        "caBundle": base64.b64encode(self._identity.ca_pem).decode(),
                    },
                    "rules": [rule],
                }
            ],
        }


def mutate(request: Json) -> Json:
    """An admission request to its response: the defaults as a JSON patch."""
    operations = admission_defaults.operations(request["object"])
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def validate(request: Json) -> Json:
    """An admission request to its response: 422 Invalid with every field that is wrong."""
    new = request["object"]
    found = (
        admission_rules.on_create(new)
        if request["operation"] == "CREATE"
        else admission_rules.on_update(new, request["oldObject"])
    )
    if not found:
        return {"allowed": True}
    name = new["metadata"].get("name", "")
    words = ", ".join(f"{refusal.field}: {refusal.message}" for refusal in found)
    causes = [{"reason": it.reason, "message": it.message, "field": it.field} for it in found]
    status = {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'JobSet.{names.JOBSET_GROUP} "{name}" is invalid: {words}',
        "details": {"name": name, "group": names.JOBSET_GROUP, "kind": "JobSet", "causes": causes},
    }
    return {"allowed": False, "status": status}


def _handler(review: Review) -> Callable[[web.Request], Any]:
    async def handle(http: web.Request) -> web.Response:
        body = await http.json()
        request = body["request"]
        return web.json_response(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": request["uid"], **review(request)},
            }
        )

    return handle


async def _accepted(client: Client, body: Json) -> bool:
    try:
        await client.create(JOBSETS, body, dry_run=True)
    except ApiError as error:
        if error.status == 422 and "vjobset.kb.io" in error.message:
            return False
        raise
    return True
