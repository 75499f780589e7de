"""Admission webhooks: which stored configurations mean a request, in which order, and what their answers do to it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jobset_gate.sim.apiserver import cel, jsonpatch
from jobset_gate.sim.apiserver.data import Obj, copy, decode, dig
from jobset_gate.sim.apiserver.hooks import CallFailed, Hooks
from jobset_gate.sim.apiserver.kinds import BUILTIN, Kind
from jobset_gate.sim.apiserver.problems import Problem, bad_request
from jobset_gate.sim.apiserver.selectors import selector_matches
from jobset_gate.sim.apiserver.store import Store, Stored
from jobset_gate.sim.apiserver.targets import Call

_MUTATING = next(kind for kind in BUILTIN if kind.plural == "mutatingwebhookconfigurations")
_VALIDATING = next(kind for kind in BUILTIN if kind.plural == "validatingwebhookconfigurations")
_NAMESPACES = next(kind for kind in BUILTIN if kind.key == ("", "namespaces"))
#: Webhooks are never asked about themselves.
_EXEMPT = frozenset([_MUTATING.key, _VALIDATING.key])


@dataclass(frozen=True, slots=True)
class _Question:
    """One request as the webhooks see it."""

    call: Call
    operation: str
    new: Obj | None
    old: Obj | None

    @property
    def meta(self) -> Obj:
        obj = self.new or self.old or {}
        meta: Obj = obj.get("metadata") or {}
        return meta


class Admission:
    """`hooks` makes the HTTPS calls; `new_uid` names each review."""

    def __init__(self, store: Store, new_uid: Callable[[], str]) -> None:
        self._store = store
        self._new_uid = new_uid
        self.hooks = Hooks()
        self._known: dict[str, tuple[Stored, list[Obj]]] = {}

    async def mutate(self, call: Call, operation: str, new: Obj, old: Obj | None) -> Obj:
        """The object after all mutating webhooks. Errors: Problem, with the webhook's own status."""
        asked: list[tuple[Obj, Obj]] = []
        for hook in self._webhooks(_MUTATING, call):
            before = new
            question = _Question(call, operation, new, old)
            if not self._means(hook, question):
                continue
            new = await self._mutated(hook, question)
            asked.append((hook, new))
            if new != before:
                # A later webhook changed the object: those before it that wish so are asked once more.
                new = await self._ask_again(asked[:-1], call, operation, new, old)
        return new

    async def _ask_again(
        self, asked: list[tuple[Obj, Obj]], call: Call, operation: str, new: Obj, old: Obj | None
    ) -> Obj:
        for place, (hook, made) in enumerate(asked):
            if hook.get("reinvocationPolicy") != "IfNeeded" or made == new:
                continue
            question = _Question(call, operation, new, old)
            if self._means(hook, question):
                new = await self._mutated(hook, question)
            # Once is enough, whatever happens later.
            asked[place] = ({**hook, "reinvocationPolicy": "Never"}, new)
        return new

    async def _mutated(self, hook: Obj, question: _Question) -> Obj:
        response = await self._ask(hook, question)
        new = question.new or {}
        patch = (response or {}).get("patch")
        if not patch:
            return new
        if (response or {}).get("patchType") != "JSONPatch":
            raise _internal(hook, f"unknown patchType {(response or {}).get('patchType')!r}")
        changed: Obj = jsonpatch.patched(copy(new), decode(base64.b64decode(patch)))
        if not isinstance(dig(changed, "metadata"), dict):
            raise bad_request(f"admission webhook {hook['name']!r}: the patched object has no metadata")
        return changed

    async def deletion(self, call: Call, old: Obj) -> None:
        """Ask everybody about a DELETE, which nobody can change. Errors: Problem."""
        question = _Question(call, "DELETE", None, old)
        for hook in self._webhooks(_MUTATING, call):
            if self._means(hook, question):
                await self._ask(hook, question)
        await self.validate(call, "DELETE", None, old)

    async def validate(self, call: Call, operation: str, new: Obj | None, old: Obj | None) -> None:
        """Errors: Problem, with the status of the first webhook that refuses."""
        question = _Question(call, operation, new, old)
        for hook in self._webhooks(_VALIDATING, call):
            if self._means(hook, question):
                await self._ask(hook, question)

    def _webhooks(self, kind: Kind, call: Call) -> Iterator[Obj]:
        """By the names of their configurations, then as listed."""
        if call.kind.key in _EXEMPT:
            return
        table = self._store.table(kind)
        for key in tuple(table.keys):
            row = table.rows.get(key)
            yield from self._webhooks_of(row) if row else ()

    def _webhooks_of(self, row: Stored) -> list[Obj]:
        """Decoded once for each version of a configuration."""
        known = self._known.get(row.meta["uid"])
        if known is None or known[0] is not row:
            known = self._known[row.meta["uid"]] = row, row.fresh().get("webhooks") or []
        return known[1]

    def _means(self, hook: Obj, question: _Question) -> bool:
        """Whether the webhook is to be asked. Errors: Problem when a match condition has no value."""
        if not any(_rule_means(rule, question) for rule in hook.get("rules") or ()):
            return False
        if not self._namespace_matches(hook, question) or not _object_matches(hook, question):
            return False
        return self._conditions_hold(hook, question)

    def _namespace_matches(self, hook: Obj, question: _Question) -> bool:
        call = question.call
        name = question.meta.get("name", "") if call.kind.key == _NAMESPACES.key else call.target.namespace
        if not name:
            return True
        row = self._store.row(_NAMESPACES, "", name)
        labels = row.labels if row else {}
        return selector_matches(hook.get("namespaceSelector"), labels)

    def _conditions_hold(self, hook: Obj, question: _Question) -> bool:
        failed: str | None = None
        variables = {"object": question.new, "oldObject": question.old, "request": _request(question, "")}
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
        raise Problem(403, f'{question.call.kind.qualified} "{question.meta.get("name", "")}" is forbidden: '
                           f'expression {failed}')  # fmt: skip

    async def _ask(self, hook: Obj, question: _Question) -> Obj | None:
        """The response of an allowed request, or None where a failing webhook may be ignored."""
        uid = self._new_uid()
        if question.call.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f"admission webhook {hook['name']!r} does not support dry run".replace("'", '"'))
        review = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": _request(question, uid),
        }
        try:
            response = await self.hooks.call(hook, review, uid)
        except CallFailed as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise _internal(hook, str(error)) from error
        for warning in response.get("warnings") or ():
            question.call.warn(str(warning))
        if not response.get("allowed"):
            raise _denied(hook, response.get("status"))
        return response


def _rule_means(rule: Obj, question: _Question) -> bool:
    call, target = question.call, question.call.target
    name = f"{call.kind.plural}/{target.subresource}" if target.subresource else call.kind.plural
    wanted = {name, f"{call.kind.plural}/*" if target.subresource else "*", f"*/{target.subresource}", "*/*"}
    scope = rule.get("scope", "*")
    return (
        not {question.operation, "*"}.isdisjoint(rule["operations"])
        and not {call.kind.group, "*"}.isdisjoint(rule["apiGroups"])
        and not {call.kind.version, "*"}.isdisjoint(rule["apiVersions"])
        and not wanted.isdisjoint(rule["resources"])
        and (scope == "*" or (scope == "Namespaced") is call.kind.namespaced)
    )


def _object_matches(hook: Obj, question: _Question) -> bool:
    """The new or the old object may match."""
    selector = hook.get("objectSelector")
    sides = [side for side in (question.new, question.old) if side is not None]
    return any(selector_matches(selector, side["metadata"].get("labels") or {}) for side in sides)


def _request(question: _Question, uid: str) -> dict[str, Any]:
    call, target = question.call, question.call.target
    kind = {"group": call.kind.group, "version": call.kind.version, "kind": call.kind.kind}
    resource = {"group": call.kind.group, "version": call.kind.version, "resource": call.kind.plural}
    request: dict[str, Any] = {"uid": uid, "kind": kind, "resource": resource}
    if target.subresource:
        request |= {"subResource": target.subresource, "requestSubResource": target.subresource}
    request |= {"requestKind": kind, "requestResource": resource}
    if name := target.name or question.meta.get("name"):
        request["name"] = name
    if target.namespace:
        request["namespace"] = target.namespace
    groups = ["system:masters", "system:authenticated"]
    request |= {
        "operation": question.operation,
        "userInfo": {"username": call.user, "groups": groups},
        "object": question.new,
        "oldObject": question.old,
        "dryRun": call.dry_run,
        "options": _options(question),
    }
    return request


def _options(question: _Question) -> Obj:
    query = question.call.query
    names = {"CREATE": "CreateOptions", "DELETE": "DeleteOptions"}
    options: Obj = {"kind": names.get(question.operation, "UpdateOptions"), "apiVersion": "meta.k8s.io/v1"}
    options |= {name: query[name] for name in ("fieldManager", "fieldValidation") if name in query}
    return options


def _denied(hook: Obj, status: Obj | None) -> Problem:
    status = status or {}
    said = status.get("message") or status.get("reason")
    text = f'admission webhook "{hook["name"]}" denied the request'
    message = f"{text}: {said}" if said else f"{text} without explanation"
    code = max(int(status.get("code") or 0), 400)
    return Problem(code, message, reason=status.get("reason") or "", details=status.get("details"))


def _internal(hook: Obj, why: str) -> Problem:
    message = f'Internal error occurred: failed calling webhook "{hook["name"]}": {why}'
    return Problem(500, message, details={"causes": [{"message": message.partition(": ")[2]}]})
