"""Admission webhooks: the registered webhooks that a request matches, their reviews over HTTPS, and their patches.

Match conditions are not evaluated: a request that rules and selectors select is always sent.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from jobset_gate.fake.apiserver.kinds import MUTATING, NAMESPACES, VALIDATING, ServedKind
from jobset_gate.fake.apiserver.patches import json_patched
from jobset_gate.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate.fake.apiserver.responses import Obj, StatusError, bad_request, copy, decode, dig, encode
from jobset_gate.fake.apiserver.selectors import selector_matches
from jobset_gate.fake.apiserver.store import StoredObject

_DEFAULT_TIMEOUT = 10
_LARGE = 1024 * 1024


class WebhookCallFailed(Exception):
    """No usable answer, which a failurePolicy of Ignore permits; the text says why."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request as the webhooks see it."""

    request: ApiRequest
    operation: str
    new: Obj | None
    old: Obj | None

    @property
    def meta(self) -> Obj:
        meta: Obj = (self.new or self.old or {}).get("metadata") or {}
        return meta

    def body(self, uid: str) -> Obj:
        """The `request` of an AdmissionReview."""
        kind, target = self.request.kind, self.request.target
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        gvr = {"group": kind.group, "version": kind.version, "resource": kind.plural}
        body: Obj = {"uid": uid, "kind": gvk, "resource": gvr, "requestKind": gvk, "requestResource": gvr}
        if target.subresource:
            body |= {"subResource": target.subresource, "requestSubResource": target.subresource}
        if name := target.name or self.meta.get("name"):
            body["name"] = name
        if target.namespace:
            body["namespace"] = target.namespace
        groups = ["system:masters", "system:authenticated"]
        return body | {
            "operation": self.operation,
            "userInfo": {"username": self.request.user, "groups": groups},
            "object": self.new,
            "oldObject": self.old,
            "dryRun": self.request.dry_run,
        }


class WebhookAdmission:
    """Calls webhooks; `services` maps the Service of a clientConfig, (namespace, name), to the URL that answers."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.services: dict[tuple[str, str], str] = {}
        self._decoded: dict[str, tuple[StoredObject, list[Obj]]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def mutate(self, request: ApiRequest, operation: str, new: Obj, old: Obj | None) -> Obj:
        """The object after all mutating webhooks. Errors: StatusError, with the webhook's own status.

        When one changes the object, those before it with reinvocationPolicy IfNeeded are called again at the end.
        """
        reinvocable: list[Obj] = []
        again: list[Obj] = []
        for hook in self._registered(MUTATING, request):
            admission = AdmissionRequest(request, operation, new, old)
            if not self._selects(hook, admission):
                continue
            before, new = new, await self._mutated(hook, admission)
            if new != before:
                again += [earlier for earlier in reinvocable if earlier not in again]
            if hook.get("reinvocationPolicy") == "IfNeeded":
                reinvocable.append(hook)
        for hook in again:
            new = await self._mutated(hook, AdmissionRequest(request, operation, new, old))
        return new

    async def deletion(self, request: ApiRequest, old: Obj) -> None:
        """All webhooks for a DELETE. Errors: StatusError."""
        admission = AdmissionRequest(request, "DELETE", None, old)
        for hook in self._registered(MUTATING, request):
            if self._selects(hook, admission):
                await self._review(hook, admission)
        await self.validate(request, "DELETE", None, old)

    async def validate(self, request: ApiRequest, operation: str, new: Obj | None, old: Obj | None) -> None:
        """Errors: StatusError, with the status of the first webhook that denies."""
        admission = AdmissionRequest(request, operation, new, old)
        for hook in self._registered(VALIDATING, request):
            if self._selects(hook, admission):
                await self._review(hook, admission)

    async def _mutated(self, hook: Obj, admission: AdmissionRequest) -> Obj:
        response = await self._review(hook, admission)
        patch, new = (response or {}).get("patch"), admission.new or {}
        if not patch:
            return new
        changed: Obj = json_patched(copy(new), decode(base64.b64decode(patch)))
        if not isinstance(dig(changed, "metadata"), dict):
            raise bad_request(f"admission webhook {hook['name']!r}: the patched object has no metadata")
        return changed

    # --- Which webhooks -----------------------------------------------------------------------------------------------

    def _registered(self, kind: ServedKind, request: ApiRequest) -> Iterator[Obj]:
        """By the names of their configurations, then as listed; configurations themselves are exempt."""
        if request.kind.key in (MUTATING.key, VALIDATING.key):
            return
        table = self._state.store.table(kind)
        for key in tuple(table.keys):
            row = table.rows.get(key)
            yield from self._webhooks_of(row) if row else ()

    def _webhooks_of(self, row: StoredObject) -> list[Obj]:
        """Decoded once for each version of a configuration."""
        known = self._decoded.get(row.meta["uid"])
        if known is None or known[0] is not row:
            known = self._decoded[row.meta["uid"]] = row, row.fresh().get("webhooks") or []
        return known[1]

    def _selects(self, hook: Obj, admission: AdmissionRequest) -> bool:
        request = admission.request
        if not any(_rule_matches(rule, admission) for rule in hook.get("rules") or ()):
            return False
        selector = hook.get("objectSelector")
        sides = [side for side in (admission.new, admission.old) if side is not None]
        if not any(selector_matches(selector, side["metadata"].get("labels") or {}) for side in sides):
            return False
        on_namespace = request.kind.key == NAMESPACES.key
        namespace = admission.meta.get("name", "") if on_namespace else request.target.namespace
        if not namespace:
            return True
        row = self._state.store.row(NAMESPACES, "", namespace)
        return selector_matches(hook.get("namespaceSelector"), row.labels if row else {})

    # --- One review ---------------------------------------------------------------------------------------------------

    async def _review(self, hook: Obj, admission: AdmissionRequest) -> Obj | None:
        """The response of an allowed request, or None where a failing webhook is ignored."""
        uid, request = self._state.new_uid(), admission.request
        if request.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": admission.body(uid)}
        try:
            response = await self._call(hook, review, uid)
        except WebhookCallFailed as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            message = f'Internal error occurred: failed calling webhook "{hook["name"]}": {error}'
            raise StatusError(500, message) from error
        for warning in response.get("warnings") or ():
            request.warn(str(warning))
        if not response.get("allowed"):
            raise _denied(hook, response.get("status") or {})
        return response

    async def _call(self, hook: Obj, review: Obj, uid: str) -> Obj:
        """The `response` of an AdmissionReview. Errors: WebhookCallFailed."""
        url, server_name = self._address(hook["clientConfig"])
        context = self._context(hook["clientConfig"].get("caBundle", ""))
        timeout = hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT
        failed = f'failed to call webhook: Post "{url}?timeout={timeout}s":'
        try:
            async with asyncio.timeout(timeout):
                status, body = await self._post(url, server_name, context, encode(review))
        except TimeoutError as error:
            raise WebhookCallFailed(f"{failed} context deadline exceeded") from error
        except (aiohttp.ClientError, OSError) as error:
            raise WebhookCallFailed(f"{failed} {error}") from error
        if status != 200:
            raise WebhookCallFailed(f"failed to call webhook: the server responded with the status code {status}")
        return _response(body, uid)

    def _address(self, config: Obj) -> tuple[str, str | None]:
        """The URL, and the name that the certificate must carry (None: the URL's)."""
        if "url" in config:
            return config["url"], None
        service = config["service"]
        at = self.services.get((service["namespace"], service["name"]))
        if at is None:
            raise WebhookCallFailed(f'failed to call webhook: service "{service["name"]}" not found')
        return f"{at}{service.get('path', '/')}", f"{service['name']}.{service['namespace']}.svc"

    async def _post(self, url: str, server_name: str | None, context: ssl.SSLContext, body: bytes) -> tuple[int, bytes]:
        """Retries once when the server has closed an idle connection, as Go's client does."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        options: dict[str, Any] = {"server_hostname": server_name} if server_name else {}
        for last in (False, True):
            try:
                # aiohttp warns of a megabyte of bare bytes, since it copies every piece.
                data = io.BytesIO(body) if len(body) >= _LARGE else body
                async with self._session.post(
                    url, data=data, headers=headers, ssl=context, allow_redirects=False, **options
                ) as got:
                    return got.status, await got.read()
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                if last:
                    raise
        raise AssertionError

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            pem = base64.b64decode(bundle).decode() if bundle else None
            try:
                context = ssl.create_default_context(cadata=pem)
            except ssl.SSLError as error:
                why = f"failed to call webhook: unable to load root certificates: {error}"
                raise WebhookCallFailed(why) from error
            self._contexts[bundle] = context
        return context


def _rule_matches(rule: Obj, admission: AdmissionRequest) -> bool:
    kind, subresource = admission.request.kind, admission.request.target.subresource
    name = f"{kind.plural}/{subresource}" if subresource else kind.plural
    wanted = {name, f"{kind.plural}/*" if subresource else "*", f"*/{subresource}", "*/*"}
    scope = rule.get("scope", "*")
    return (
        not {admission.operation, "*"}.isdisjoint(rule["operations"])
        and not {kind.group, "*"}.isdisjoint(rule["apiGroups"])
        and not {kind.version, "*"}.isdisjoint(rule["apiVersions"])
        and not wanted.isdisjoint(rule["resources"])
        and (scope == "*" or (scope == "Namespaced") is kind.namespaced)
    )


def _denied(hook: Obj, status: Obj) -> StatusError:
    why = status.get("message") or status.get("reason")
    text = f'admission webhook "{hook["name"]}" denied the request'
    message = f"{text}: {why}" if why else f"{text} without explanation"
    code = max(int(status.get("code") or 0), 400)
    return StatusError(code, message, reason=status.get("reason") or "", details=status.get("details"))


def _response(body: bytes, uid: str) -> Obj:
    try:
        review = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WebhookCallFailed(f"failed to call webhook: {error}") from error
    response = dig(review, "response")
    if not isinstance(response, dict):
        raise WebhookCallFailed("invalid webhook response: Webhook response was absent")
    if response.get("uid") != uid:
        raise WebhookCallFailed(f'invalid webhook response: expected response.uid="{uid}"')
    return response
