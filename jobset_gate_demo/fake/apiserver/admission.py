"""Admission webhooks: the registered webhooks that a request matches, their reviews over HTTPS, and their patches.

Left out: match conditions, failurePolicy Ignore, reinvocation, webhooks behind Services, and reviews of DELETE.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl

import aiohttp

from jobset_gate.objects.unstructured import selector_matches
from jobset_gate_demo.fake.apiserver.kinds import MUTATING, NAMESPACES, VALIDATING, ServedKind
from jobset_gate_demo.fake.apiserver.patches import json_patched
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate_demo.fake.apiserver.responses import Obj, StatusError, copy, decode, encode

_DEFAULT_TIMEOUT = 10


class WebhookAdmission:
    """`operation` is CREATE or UPDATE."""

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
        for hook in self._registered(MUTATING, request, operation, new, old):
            if patch := (await self._review(hook, request, operation, new, old)).get("patch"):
                new = json_patched(copy(new), decode(base64.b64decode(patch)))
        return new

    async def validate(self, request: ApiRequest, operation: str, new: Obj, old: Obj | None) -> None:
        """Errors: StatusError, with the status of the first webhook that denies."""
        for hook in self._registered(VALIDATING, request, operation, new, old):
            await self._review(hook, request, operation, new, old)

    def _registered(
        self, kind: ServedKind, request: ApiRequest, operation: str, new: Obj, old: Obj | None
    ) -> list[Obj]:
        """By the names of their configurations, then as listed; configurations themselves are exempt."""
        if request.kind.key in (MUTATING.key, VALIDATING.key):
            return []
        labels = [side["metadata"].get("labels") or {} for side in (new, old) if side is not None]
        namespace = request.target.namespace or ""
        row = self._state.store.row(NAMESPACES, "", namespace)
        of_namespace = {"kubernetes.io/metadata.name": namespace, **(row.labels if row else {})}
        return [
            hook
            for _, stored in sorted(self._state.store.table(kind).rows.items())
            for hook in stored.fresh().get("webhooks") or ()
            if any(_rule_matches(rule, request, operation) for rule in hook.get("rules") or ())
            and any(selector_matches(hook.get("objectSelector"), its) for its in labels)
            and selector_matches(hook.get("namespaceSelector"), of_namespace)
        ]

    async def _review(self, hook: Obj, request: ApiRequest, operation: str, new: Obj, old: Obj | None) -> Obj:
        """The response of an allowed request. Whatever the failurePolicy, a webhook that fails refuses it."""
        kind, target = request.kind, request.target
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        gvr = {"group": kind.group, "version": kind.version, "resource": kind.plural}
        body: Obj = {
            "uid": self._state.new_uid(),
            "kind": gvk,
            "resource": gvr,
            "requestKind": gvk,
            "requestResource": gvr,
            "name": target.name or new["metadata"].get("name", ""),
            "namespace": target.namespace or "",
            "operation": operation,
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": request.dry_run,
        }
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
            request.warn(str(warning))
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


def _rule_matches(rule: Obj, request: ApiRequest, operation: str) -> bool:
    kind, subresource = request.kind, request.target.subresource
    name = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return (
        not {operation, "*"}.isdisjoint(rule["operations"])
        and not {kind.group, "*"}.isdisjoint(rule["apiGroups"])
        and not {kind.version, "*"}.isdisjoint(rule["apiVersions"])
        and name in rule["resources"]
    )
