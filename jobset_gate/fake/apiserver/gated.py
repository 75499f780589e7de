"""Scheduling gates of pods: they come with the pod, they only go, and a gated pod may ask for more of its node."""

from __future__ import annotations

from jobset_gate.fake.apiserver.encoding import Obj, dig
from jobset_gate.fake.apiserver.meta import QUALIFIED
from jobset_gate.fake.apiserver.status_errors import cause

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"


def problems(spec: Obj, path: str) -> list[Obj]:
    """What no pod and no template of pods may have; `path` is that of the spec."""
    found = []
    seen: set[str] = set()
    for place, name in enumerate(_names(spec)):
        at = f"{path}.schedulingGates[{place}]"
        if not QUALIFIED.fullmatch(name):
            found.append(cause(at, f'Invalid value: "{name}": name part must consist of alphanumeric characters'))
        if name in seen:
            found.append(cause(at, f'Duplicate value: "{name}"', "FieldValueDuplicate"))
        seen.add(name)
    return found


def new_problems(spec: Obj) -> list[Obj]:
    """What a new pod may not have besides."""
    if not spec.get("schedulingGates") or not spec.get("nodeName"):
        return []
    why = "Forbidden: cannot be set until all schedulingGates have been cleared"
    return [cause("spec.nodeName", why, "FieldValueForbidden")]


def change_problems(new: Obj, old: Obj) -> list[Obj]:
    """What of a pod's spec may not become so: a gate more, or less that a gated pod asks of its node."""
    before = set(_names(old))
    found = [
        cause(
            f"spec.schedulingGates[{place}].name",
            f"Forbidden: only deletion is allowed, but found new scheduling gate '{name}'",
            "FieldValueForbidden",
        )
        for place, name in enumerate(_names(new))
        if name not in before
    ]
    return [*found, *_node_problems(new, old)] if before else found


def _node_problems(new: Obj, old: Obj) -> list[Obj]:
    found = []
    if not (old.get("nodeSelector") or {}).items() <= (new.get("nodeSelector") or {}).items():
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(cause("spec.nodeSelector", f"Invalid value: {why}"))
    return [*found, *_term_problems(_terms(new), _terms(old))]


def _term_problems(new: list[Obj], old: list[Obj]) -> list[Obj]:
    if old and len(old) != len(new):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [cause(_TERMS, f"Invalid value: {why}")]
    return [
        cause(f"{_TERMS}[{place}]", "Invalid value: only additions are allowed (no mutations or deletions)")
        for place, (now, was) in enumerate(zip(new, old, strict=False))
        if not _only_more(now, was)
    ]


def _only_more(new: Obj, old: Obj) -> bool:
    """A term that demanded nothing matched no node, and stays so."""
    parts = [(new.get(name) or [], old.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(was for _, was in parts):
        return not any(now for now, _ in parts)
    return all(now[: len(was)] == was for now, was in parts)


def _names(spec: Obj) -> list[str]:
    return [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]


def _terms(spec: Obj) -> list[Obj]:
    terms: list[Obj] = dig(spec, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms") or []
    return terms
