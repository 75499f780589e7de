"""Admission webhooks: which stored configurations mean a request, in which order, and what their answers do to it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

from jobset_gate.fake.apiserver import cel, jsonpatch, reviews
from jobset_gate.fake.apiserver.encoding import Obj, copy, decode, dig
from jobset_gate.fake.apiserver.kinds import BUILTIN, ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.selectors import selector_matches
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request
from jobset_gate.fake.apiserver.store import ObjectStore, StoredObject
from jobset_gate.fake.apiserver.webhook_client import WebhookCallFailed, WebhookClient

_MUTATING = next(kind for kind in BUILTIN if kind.plural == "mutatingwebhookconfigurations")
_VALIDATING = next(kind for kind in BUILTIN if kind.plural == "validatingwebhookconfigurations")
_NAMESPACES = next(kind for kind in BUILTIN if kind.key == ("", "namespaces"))
#: Webhooks are never asked about themselves.
_EXEMPT = frozenset([_MUTATING.key, _VALIDATING.key])


class WebhookAdmission:
    """`hooks` makes the HTTPS calls; `new_uid` names each review."""

    def __init__(self, store: ObjectStore, new_uid: Callable[[], str]) -> None:
        self._store = store
        self._new_uid = new_uid
        self.hooks = WebhookClient()
        self._known: dict[str, tuple[StoredObject, list[Obj]]] = {}

    async def mutate(self, call: ApiRequest, operation: str, new: Obj, old: Obj | None) -> Obj:
        """The object after all mutating webhooks. Errors: Problem, with the webhook's own status.

        When one changes the object, those before it that wish so are asked once more, after the last one.
        """
        willing: list[Obj] = []
        again: list[Obj] = []
        for hook in self._webhooks(_MUTATING, call):
            question = reviews.AdmissionRequest(call, operation, new, old)
            if not self._means(hook, question):
                continue
            before, new = new, await self._mutated(hook, question)
            if new != before:
                again += [earlier for earlier in willing if earlier not in again]
            if hook.get("reinvocationPolicy") == "IfNeeded":
                willing.append(hook)
        for hook in again:
            question = reviews.AdmissionRequest(call, operation, new, old)
            if self._means(hook, question):
                new = await self._mutated(hook, question)
        return new

    async def _mutated(self, hook: Obj, question: reviews.AdmissionRequest) -> Obj:
        response = await self._ask(hook, question)
        new = question.new or {}
        patch = (response or {}).get("patch")
        if not patch:
            return new
        if (response or {}).get("patchType") != "JSONPatch":
            raise reviews.internal(hook, f"unknown patchType {(response or {}).get('patchType')!r}")
        changed: Obj = jsonpatch.patched(copy(new), decode(base64.b64decode(patch)))
        if not isinstance(dig(changed, "metadata"), dict):
            raise bad_request(f"admission webhook {hook['name']!r}: the patched object has no metadata")
        return changed

    async def deletion(self, call: ApiRequest, old: Obj) -> None:
        """Ask everybody about a DELETE, which nobody can change. Errors: Problem."""
        question = reviews.AdmissionRequest(call, "DELETE", None, old)
        for hook in self._webhooks(_MUTATING, call):
            if self._means(hook, question):
                await self._ask(hook, question)
        await self.validate(call, "DELETE", None, old)

    async def validate(self, call: ApiRequest, operation: str, new: Obj | None, old: Obj | None) -> None:
        """Errors: Problem, with the status of the first webhook that refuses."""
        question = reviews.AdmissionRequest(call, operation, new, old)
        for hook in self._webhooks(_VALIDATING, call):
            if self._means(hook, question):
                await self._ask(hook, question)

    def _webhooks(self, kind: ServedKind, call: ApiRequest) -> Iterator[Obj]:
        """By the names of their configurations, then as listed."""
        if call.kind.key in _EXEMPT:
            return
        table = self._store.table(kind)
        for key in tuple(table.keys):
            row = table.rows.get(key)
            yield from self._webhooks_of(row) if row else ()

    def _webhooks_of(self, row: StoredObject) -> list[Obj]:
        """Decoded once for each version of a configuration."""
        known = self._known.get(row.meta["uid"])
        if known is None or known[0] is not row:
            known = self._known[row.meta["uid"]] = row, row.fresh().get("webhooks") or []
        return known[1]

    def _means(self, hook: Obj, question: reviews.AdmissionRequest) -> bool:
        """Whether the webhook is to be asked. Errors: Problem when a match condition has no value."""
        if not any(reviews.rule_means(rule, question) for rule in hook.get("rules") or ()):
            return False
        if not self._namespace_matches(hook, question) or not reviews.object_matches(hook, question):
            return False
        return self._conditions_hold(hook, question)

    def _namespace_matches(self, hook: Obj, question: reviews.AdmissionRequest) -> bool:
        call = question.call
        name = question.meta.get("name", "") if call.kind.key == _NAMESPACES.key else call.target.namespace
        if not name:
            return True
        row = self._store.row(_NAMESPACES, "", name)
        labels = row.labels if row else {}
        return selector_matches(hook.get("namespaceSelector"), labels)

    def _conditions_hold(self, hook: Obj, question: reviews.AdmissionRequest) -> bool:
        failed: str | None = None
        variables = {"object": question.new, "oldObject": question.old, "request": reviews.request_of(question, "")}
        for condition in hook.get("matchConditions") or ():
            try:
                if cel.evaluate(condition["expression"], variables) is not True:
                    return False
            except cel.CelError as error:
                failed = failed or f"{condition['name']}: {error}"
        if failed is None:
            return True
        if hook.get("failurePolicy", "Fail") == "Ignore":
            return False
        raise StatusError(403, f'{question.call.kind.qualified} "{question.meta.get("name", "")}" is forbidden: '
                           f'expression {failed}')  # fmt: skip

    async def _ask(self, hook: Obj, question: reviews.AdmissionRequest) -> Obj | None:
        """The response of an allowed request, or None where a failing webhook may be ignored."""
        uid = self._new_uid()
        if question.call.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f"admission webhook {hook['name']!r} does not support dry run".replace("'", '"'))
        review = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": reviews.request_of(question, uid),
        }
        try:
            response = await self.hooks.call(hook, review, uid)
        except WebhookCallFailed as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise reviews.internal(hook, str(error)) from error
        for warning in response.get("warnings") or ():
            question.call.warn(str(warning))
        if not response.get("allowed"):
            raise reviews.denied(hook, response.get("status"))
        return response
