"""The rules of object metadata: what the system fills in, keeps and counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.status_errors import cause, conflict, invalid

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.state import ServerState

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_FREE_NAMES = ("rbac.authorization.k8s.io",)
_LABEL_NAMES = (("", "namespaces"), ("", "services"))
_ANNOTATIONS_LIMIT = 256 * 1024
_NEVER_EMPTY = ("labels", "annotations", "ownerReferences", "finalizers")
#: Set once, kept for ever whatever an update says.
_FIXED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def fill(core: ServerState, kind: ServedKind, obj: Obj) -> None:
    """System fields of a new object."""
    meta = obj["metadata"]
    for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        meta.pop(name, None)
    meta["uid"] = core.new_uid()
    meta["creationTimestamp"] = core.now()
    if kind.generation or kind.custom:
        meta["generation"] = 1


def trim(obj: Obj) -> None:
    """What is empty is absent."""
    for name in _NEVER_EMPTY:
        if obj["metadata"].get(name) in ([], {}):
            del obj["metadata"][name]


def keep(kind: ServedKind, new: Obj, live: Obj, name: str) -> None:
    """Carry the fixed fields over from the live object. Errors: Problem 409 for another uid or version, 422."""
    meta, was = new["metadata"], live["metadata"]
    if meta.get("uid") not in (None, "", was["uid"]):
        raise conflict(
            kind, name, f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {was['uid']}"
        )
    moved = meta.get("deletionTimestamp")
    if moved is not None and moved != was.get("deletionTimestamp"):
        why = f'Invalid value: "{moved}": field is immutable'
        raise invalid(kind, name, [cause("metadata.deletionTimestamp", why)])
    given = meta.get("resourceVersion")
    if given not in (None, "", "0", was["resourceVersion"]):
        raise conflict(kind, name)
    for field in _FIXED:
        if field in was:
            meta[field] = was[field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = was["resourceVersion"]


def count_generation(kind: ServedKind, new: Obj, live: Obj) -> None:
    """One more generation when anything but metadata and status changed."""
    if not (kind.generation or kind.custom):
        return
    outside = {"metadata", "kind", "apiVersion"} | ({"status"} if kind.status else set())
    if any(new.get(name) != live.get(name) for name in (new.keys() | live.keys()) - outside):
        new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1


def problems(kind: ServedKind, obj: Obj) -> list[Obj]:
    """Causes for a 422: bad names, labels, annotations, owner references."""
    meta = obj["metadata"]
    found = _name_problems(kind, meta.get("name", ""))
    for key, value in (meta.get("labels") or {}).items():
        if not QUALIFIED.fullmatch(key):
            found.append(cause("metadata.labels", f"Invalid value: {key!r}: name part must consist of alphanumerics"))
        if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            found.append(
                cause("metadata.labels", f'Invalid value: "{value}": a valid label must be 63 characters or less')
            )
    size = sum(len(key) + len(str(value)) for key, value in (meta.get("annotations") or {}).items())
    if size > _ANNOTATIONS_LIMIT:
        found.append(cause("metadata.annotations", f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"))
    controllers = [ref for ref in meta.get("ownerReferences") or () if ref.get("controller")]
    if len(controllers) > 1:
        found.append(
            cause("metadata.ownerReferences", "Invalid value: Only one reference can have Controller set to true")
        )
    return found


def _name_problems(kind: ServedKind, name: str) -> list[Obj]:
    if not name:
        return [cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")]
    if kind.group in _FREE_NAMES:
        return []
    limit, pattern = (63, _LABEL) if kind.key in _LABEL_NAMES else (253, _SUBDOMAIN)
    if len(name) > limit or not pattern.fullmatch(name):
        what = "a lowercase RFC 1123 label" if pattern is _LABEL else "a lowercase RFC 1123 subdomain"
        return [
            cause(
                "metadata.name", f'Invalid value: "{name}": {what} must consist of lower case alphanumeric characters'
            )
        ]
    return []
