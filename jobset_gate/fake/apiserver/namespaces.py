"""Namespaces: where objects may be made, and how a namespace empties itself before it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import BUILTIN, ServedKind
from jobset_gate.fake.apiserver.status_errors import forbidden, not_found

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.state import ServerState

NAMESPACE = next(kind for kind in BUILTIN if kind.key == ("", "namespaces"))
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAME_LABEL = "kubernetes.io/metadata.name"


def prepare(namespace: Obj, _now: str) -> None:
    meta = namespace["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), _NAME_LABEL: meta["name"]}
    namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def make_initial(core: ServerState) -> None:
    for name in INITIAL:
        meta = {"name": name, "uid": core.new_uid(), "creationTimestamp": core.now()}
        namespace: Obj = {"metadata": meta}
        prepare(namespace, core.now())
        core.store.commit(NAMESPACE, namespace)


def require_open(core: ServerState, kind: ServedKind, namespace: str | None, name: str) -> None:
    """Refuse a creation in a namespace that is not there (404) or going (403)."""
    if not kind.namespaced:
        return
    row = core.store.row(NAMESPACE, "", namespace or "")
    if row is None:
        raise not_found(NAMESPACE, namespace or "")
    if row.meta.get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        text = f"namespace {namespace} is being terminated"
        causes = [{"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}]
        raise forbidden(kind, name, why, causes)
