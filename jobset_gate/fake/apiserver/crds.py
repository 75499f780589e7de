"""CustomResourceDefinitions: stored ones become kinds that are served, at once."""

from __future__ import annotations

from jobset_gate.fake.apiserver import custom
from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import BUILTIN, ServedKind
from jobset_gate.fake.apiserver.state import ServerState
from jobset_gate.fake.apiserver.store import StoreEvent

CRD = next(kind for kind in BUILTIN if kind.key == ("apiextensions.k8s.io", "customresourcedefinitions"))


def default(crd: Obj) -> None:
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.setdefault("names", {})
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})


class CrdRegistrar:
    """Keeps the served kinds equal to the stored CRDs."""

    def __init__(self, core: ServerState) -> None:
        self._core = core
        core.store.listeners.append(self._changed)

    def _changed(self, kind: ServedKind, change: StoreEvent) -> None:
        if kind.key != CRD.key:
            return
        crd = change.now.fresh()
        if change.deleted:
            self._drop(crd)
            return
        for served in custom.kinds_of(crd):
            self._core.kinds.put(served)
        if change.old is None:
            self._establish(change)

    def _establish(self, change: StoreEvent) -> None:
        """What the API server's own controllers say of a new CRD."""
        crd = change.now.fresh()
        now = self._core.now()
        told = (("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"))  # fmt: skip
        crd["status"] = {
            "conditions": [
                {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
                for type_, reason, message in told
            ],
            "acceptedNames": crd["spec"]["names"],
            "storedVersions": [version["name"] for version in crd["spec"]["versions"] if version.get("storage")],
        }
        self._core.store.commit(CRD, crd)

    def _drop(self, crd: Obj) -> None:
        store = self._core.store
        for kind in custom.kinds_of(crd):
            for row in list(store.table(kind).rows.values()):
                store.remove(kind, row.fresh())
        self._core.kinds.drop(crd["spec"]["group"], crd["spec"]["names"]["plural"])
