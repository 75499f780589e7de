"""One request as admission webhooks see it: whom it concerns, what is asked, what a refusal becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.selectors import selector_matches
from jobset_gate.fake.apiserver.status_errors import StatusError


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request as the webhooks see it."""

    call: ApiRequest
    operation: str
    new: Obj | None
    old: Obj | None

    @property
    def meta(self) -> Obj:
        obj = self.new or self.old or {}
        meta: Obj = obj.get("metadata") or {}
        return meta


def rule_means(rule: Obj, question: AdmissionRequest) -> bool:
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


def object_matches(hook: Obj, question: AdmissionRequest) -> bool:
    """The new or the old object may match."""
    selector = hook.get("objectSelector")
    sides = [side for side in (question.new, question.old) if side is not None]
    return any(selector_matches(selector, side["metadata"].get("labels") or {}) for side in sides)


def request_of(question: AdmissionRequest, uid: str) -> dict[str, Any]:
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


def _options(question: AdmissionRequest) -> Obj:
    query = question.call.query
    names = {"CREATE": "CreateOptions", "DELETE": "DeleteOptions"}
    options: Obj = {"kind": names.get(question.operation, "UpdateOptions"), "apiVersion": "meta.k8s.io/v1"}
    options |= {name: query[name] for name in ("fieldManager", "fieldValidation") if name in query}
    return options


def denied(hook: Obj, status: Obj | None) -> StatusError:
    status = status or {}
    said = status.get("message") or status.get("reason")
    text = f'admission webhook "{hook["name"]}" denied the request'
    message = f"{text}: {said}" if said else f"{text} without explanation"
    code = max(int(status.get("code") or 0), 400)
    return StatusError(code, message, reason=status.get("reason") or "", details=status.get("details"))


def internal(hook: Obj, why: str) -> StatusError:
    message = f'Internal error occurred: failed calling webhook "{hook["name"]}": {why}'
    return StatusError(500, message, details={"causes": [{"message": message.partition(": ")[2]}]})
