"""An admission webhook for tests: it answers as the test says and records the requests, over real TLS."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from typing_extensions import override

from tests.contract.apiserver.api import Json, RawApi
from tests.fakes.loopback_server import LoopbackServer
from webhook.certs.serving import self_signed

Answer = Callable[[Json], Json]
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def allow(_: Json) -> Json:
    return {"allowed": True}


def deny(message: str = "", **status: Any) -> Answer:
    said = {**({"message": message} if message else {}), **status}
    return lambda _: {"allowed": False, **({"status": said} if said else {})}


def warn(*warnings: str) -> Answer:
    return lambda _: {"allowed": True, "warnings": list(warnings)}


def patch(*operations: Json) -> Answer:
    encoded = base64.b64encode(msgspec.json.encode(operations)).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


class HookServer(LoopbackServer):
    """`async with HookServer(api) as hooks`; its configurations are removed at the end."""

    def __init__(self, api: RawApi) -> None:
        self._api, self._identity = api, self_signed()
        super().__init__(self._serve, self._identity.serving.context)
        self._answers: dict[str, Answer] = {}
        self._made: list[str] = []
        self.requests: list[tuple[str, Json]] = []

    @override
    async def __aexit__(self, *_: object) -> None:
        for path in self._made:
            await self._api.delete(path)
        await super().__aexit__()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        review = msgspec.json.decode(await request.read())
        name = request.path.strip("/")
        if review["request"].get("name") != "kube-root-ca.crt":
            # The real control plane's own, which comes whenever it likes.
            self.requests.append((name, review["request"]))
        response = {"uid": review["request"]["uid"], **self._answers[name](review["request"])}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})

    def names(self) -> list[str]:
        """The webhooks called since the last time, in order."""
        names = [name for name, _ in self.requests]
        self.requests.clear()
        return names

    async def add(self, name: str, answer: Answer, *, mutating: bool = True, **settings: Any) -> None:
        """One configuration with one webhook, for ConfigMaps of the test's namespace; effective when this returns."""
        self._answers[name] = answer
        url = f"{self.url}/{name}"
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
            "operations": ["CREATE", "UPDATE"],
        }
        hook: Json = {
            "name": f"{name}.example.com",
            "clientConfig": {"url": url, "caBundle": self._identity.ca_bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._api.namespace}},
            **settings,
        }
        sort = "Mutating" if mutating else "Validating"
        path = f"{_ADMISSION}/{sort.lower()}webhookconfigurations"
        full = f"{self._api.namespace}-{len(self._made)}-{name}"
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{sort}WebhookConfiguration",
            "metadata": {"name": full},
            "webhooks": [hook],
        }
        made = await self._api.post(path, body)
        assert made.status == 201, made.object
        self._made.append(f"{path}/{full}")
