"""PATCH bodies -> a function from the live object to the wanted one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.apiserver import bodies, jsonpatch, mergepatch, strategic, typed
from jobset_gate.fake.apiserver.apply import apply
from jobset_gate.fake.apiserver.encoding import Obj, copy
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.managed import FieldManager
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.state import ServerState
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request, cause, conflict, invalid
from jobset_gate.fake.apiserver.store import StoredObject

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")


def unowned(kind: ServedKind, subresource: str) -> tuple[str, ...]:
    """The top-level fields that this endpoint never writes, so that nobody owns them by it."""
    if subresource == "status":
        return ("spec", "metadata") if kind.custom else ("spec",)
    return ("status",) if kind.status else ()


@dataclass(frozen=True, slots=True)
class Patch:
    core: ServerState
    call: ApiRequest
    sort: str
    body: Any

    @property
    def applies(self) -> bool:
        return self.sort in APPLY

    def __call__(self, live: StoredObject) -> Obj:
        if self.applies:
            return self._applied(live.fresh())
        new = self._patched(live)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise bad_request("the patched object must have metadata")
        return new

    def new_object(self) -> Obj:
        target = self.call.target
        blank: Obj = {"apiVersion": self.call.kind.api_version, "kind": self.call.kind.kind}
        blank["metadata"] = {"name": target.name}
        if target.namespace:
            blank["metadata"]["namespace"] = target.namespace
        if uid := self.body["metadata"].get("uid"):
            raise conflict(
                self.call.kind,
                target.name or "",
                f"uid mismatch: the provided object specified uid {uid}, and no existing object was found",
            )
        return self._applied(blank)

    def _applied(self, live: Obj) -> Obj:
        call = self.call
        writer = FieldManager(call.manager, "Apply", call.kind.api_version, call.target.subresource)
        new = apply(
            live,
            self.body,
            writer,
            call.kind.shape,
            now=self.core.now(),
            without=unowned(call.kind, call.target.subresource),
            force=call.flag("force"),
        )
        # A precondition, also at an endpoint that takes nothing else of metadata.
        if version := self.body["metadata"].get("resourceVersion"):
            new["metadata"]["resourceVersion"] = version
        return new

    def _patched(self, live: StoredObject) -> Any:
        if self.sort == JSON:
            return jsonpatch.patched(live.fresh(), self.body)
        if self.sort == MERGE:
            return mergepatch.merged(live.fresh(), self.body)
        return strategic.merged(live.fresh(), self.body, self.call.kind.shape)


def reader(core: ServerState, call: ApiRequest) -> Patch:
    """Errors: Problem 415 for a patch that is not served, 400 for a bad body, 422 for an apply without a manager."""
    sort = call.content_type.partition(";")[0].strip()
    served = (JSON, MERGE, *APPLY) if call.kind.custom else (JSON, MERGE, STRATEGIC, *APPLY)
    if sort not in served:
        listed = ", ".join(served)
        raise StatusError(
            415, f"the body of the request was in an unknown format - accepted media types include: {listed}"
        )
    body = bodies.parse(call)
    if sort in APPLY:
        _check_apply(call, body)
        if isinstance(body, dict):
            typed.require(call.kind, {"metadata": {}, **body})
        body = bodies.checked(call, copy(body))
    elif sort == JSON:
        if not isinstance(body, list):
            raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    elif not isinstance(body, dict):
        raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
    return Patch(core, call, sort, body)


def _check_apply(call: ApiRequest, body: Any) -> None:
    if not call.query.get("fieldManager"):
        why = "Required value: is required for apply patch"
        options = ServedKind("meta.k8s.io", "v1", "patchoptions", "PatchOptions")
        raise invalid(options, "", [cause("fieldManager", why, "FieldValueRequired")])
    meta = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(meta, dict):
        return
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if meta.get("name") not in (None, call.target.name):
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({call.target.name})"
        )
