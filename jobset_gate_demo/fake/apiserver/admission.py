"""Admission webhooks: the registered webhooks that a request matches, their reviews over HTTPS, and their patches.

Left out: match conditions, failurePolicy Ignore, reinvocation, webhooks behind Services, and reviews of DELETE.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from jobset_gate.objects.unstructured import selector_matches
from jobset_gate_demo.fake.apiserver.kinds import MUTATING, NAMESPACES, VALIDATING, ServedKind
from jobset_gate_demo.fake.apiserver.patches import json_patched
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate_demo.fake.apiserver.responses import Obj, StatusError, copy, decode, encode

_DEFAULT_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request as the webhooks see it. operation: CREATE or UPDATE."""

    request: ApiRequest
    operation: str
    new: Obj
    old: Obj | None

    def body(self, uid: str) -> Obj:
        """The `request` of an AdmissionReview."""
        kind, target = self.request.kind, self.request.target
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        gvr = {"group": kind.group, "version": kind.version, "resource": kind.plural}
        body: Obj = {"uid": uid, "kind": gvk, "resource": gvr, "requestKind": gvk, "requestResource": gvr}
        return body | {
            "name": target.name or self.new["metadata"].get("name", ""),
            "namespace": target.namespace or "",
            "operation": self.operation,
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": self.new,
            "oldObject": self.old,
            "dryRun": self.request.dry_run,
        }


class WebhookAdmission:
    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def mutate(self, request: ApiRequest, operation: str, new: Obj, old: Obj | None) -> Obj:
        """The object as all mutating webhooks leave it. Errors: StatusError, a webhook's own status."""
        for hook in self._registered(MUTATING, request):
            admission = AdmissionRequest(request, operation, new, old)
            if self._selects(hook, admission) and (patch := (await self._review(hook, admission)).get("patch")):
                new = json_patched(copy(new), decode(base64.b64decode(patch)))
        return new

    async def validate(self, request: ApiRequest, operation: str, new: Obj, old: Obj | None) -> None:
        """Errors: StatusError, with the status of the first webhook that denies."""
        admission = AdmissionRequest(request, operation, new, old)
        for hook in self._registered(VALIDATING, request):
            if self._selects(hook, admission):
                await self._review(hook, admission)

    def _registered(self, kind: ServedKind, request: ApiRequest) -> Iterator[Obj]:
        """By the names of their configurations, then as listed; configurations themselves are exempt."""
        if request.kind.key in (MUTATING.key, VALIDATING.key):
            return
        table = self._state.store.table(kind)
        for row in [table.rows[key] for key in table.keys]:
            yield from row.fresh().get("webhooks") or []

    def _selects(self, hook: Obj, admission: AdmissionRequest) -> bool:
        if not any(_rule_matches(rule, admission) for rule in hook.get("rules") or ()):
            return False
        sides = [side["metadata"].get("labels") or {} for side in (admission.new, admission.old) if side is not None]
        if not any(selector_matches(hook.get("objectSelector"), labels) for labels in sides):
            return False
        namespace = admission.request.target.namespace
        row = self._state.store.row(NAMESPACES, "", namespace) if namespace else None
        return row is None or selector_matches(hook.get("namespaceSelector"), row.labels)

    async def _review(self, hook: Obj, admission: AdmissionRequest) -> Obj:
        """The response of an allowed request. Whatever the failurePolicy, a webhook that fails refuses it."""
        body = admission.body(self._state.new_uid())
        review = encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": body})
        url, seconds = hook["clientConfig"]["url"], hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT
        failed = f'Internal error occurred: failed calling webhook "{hook["name"]}": failed to call webhook:'
        try:
            async with asyncio.timeout(seconds):
                answer = await self._post(url, self._context(hook["clientConfig"].get("caBundle", "")), review)
        except (aiohttp.ClientError, OSError) as error:
            raise StatusError(500, f'{failed} Post "{url}?timeout={seconds}s": {error}') from error
        response: Obj = decode(answer)["response"]
        for warning in response.get("warnings") or ():
            admission.request.warn(str(warning))
        if not response.get("allowed"):
            status = response.get("status") or {}
            message = f'admission webhook "{hook["name"]}" denied the request: {status.get("message", "")}'
            raise StatusError(
                status.get("code") or 400, message, reason=status.get("reason") or "", details=status.get("details")
            )
        return response

    async def _post(self, url: str, context: ssl.SSLContext, body: bytes) -> bytes:
        if self._session is None:
            # In virtual time a webhook's idle connections end at once.
            connector = aiohttp.TCPConnector(force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        # aiohttp warns of a megabyte of bare bytes, since it copies every piece.
        data = io.BytesIO(body)
        async with self._session.post(url, data=data, headers=headers, ssl=context, raise_for_status=True) as got:
            return await got.read()

    def _context(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._contexts:
            pem = base64.b64decode(bundle).decode() if bundle else None
            self._contexts[bundle] = ssl.create_default_context(cadata=pem)
        return self._contexts[bundle]


def _rule_matches(rule: Obj, admission: AdmissionRequest) -> bool:
    kind, subresource = admission.request.kind, admission.request.target.subresource
    name = f"{kind.plural}/{subresource}" if subresource else kind.plural
    wanted = {name, f"{kind.plural}/*" if subresource else "*", f"*/{subresource}", "*/*"}
    return (
        not {admission.operation, "*"}.isdisjoint(rule["operations"])
        and not {kind.group, "*"}.isdisjoint(rule["apiGroups"])
        and not {kind.version, "*"}.isdisjoint(rule["apiVersions"])
        and not wanted.isdisjoint(rule["resources"])
    )
