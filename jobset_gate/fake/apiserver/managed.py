"""metadata.managedFields: who owns which field, kept right through every ordinary write."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jobset_gate.fake.apiserver import fields
from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.fields import Comparison, Tree
from jobset_gate.fake.apiserver.shapes import Shape
from jobset_gate.fake.apiserver.status_errors import bad_request

#: Metadata that belongs to the system: nobody owns it.
_SYSTEM = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion")
)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Who writes: the identity under which fields are owned. operation: "Apply" or "Update"."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """What a manager owns, since when."""

    owned: Tree
    time: str


Shares = dict[FieldManager, Share]


def view(obj: Obj | None, without: tuple[str, ...] = ()) -> Obj:
    """The part of an object that can be owned. `without`: top-level fields this endpoint never writes."""
    if obj is None:
        return {}
    seen = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", *without)}
    meta = {key: value for key, value in seen.pop("metadata", {}).items() if key not in _SYSTEM}
    return {"metadata": meta, **seen} if meta else seen


def shares_of(obj: Obj | None) -> Shares:
    """Errors: Problem 400 for entries that are not well formed."""
    entries = (obj or {}).get("metadata", {}).get("managedFields") or []
    shares: Shares = {}
    for entry in entries:
        try:
            shares[
                FieldManager(entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", ""))
            ] = Share(entry.get("fieldsV1") or {}, entry.get("time", ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise bad_request(f"metadata.managedFields: Invalid value: {entry!r}") from error
    return shares


def starting_shares(live: Obj | None, new: Obj) -> Shares:
    """The shares a write starts from: those the request sets explicitly, else the live object's.

    A list with one empty entry means: forget them all.
    """
    given = new["metadata"].get("managedFields")
    if given == [{}]:
        return {}
    return shares_of(new) if given else shares_of(live)


def write_shares(obj: Obj, shares: Shares) -> None:
    """Put the shares into the object, in the order in which the API server lists them."""
    meta = obj["metadata"]
    meta.pop("managedFields", None)
    ordered = sorted(shares.items(), key=lambda item: (item[0].operation, item[1].time, item[0].name))
    entries = [_entry(manager, share) for manager, share in ordered if share.owned]
    if entries:
        meta["managedFields"] = entries


def _entry(manager: FieldManager, share: Share) -> Obj:
    entry: Obj = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": share.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": share.owned,
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def without_others(shares: Shares, writer: FieldManager, compared: Comparison) -> Shares:
    """The others lose what the writer changed or removed."""
    lost = fields.union(fields.union(compared.added, compared.modified), compared.removed)
    if lost is None:
        return shares
    left: Shares = {}
    for manager, share in shares.items():
        owned = share.owned if manager == writer else fields.difference(share.owned, lost)
        if owned:
            left[manager] = share if owned is share.owned else replace(share, owned=owned)
    return left


def track(
    live: Obj | None, new: Obj, writer: FieldManager, shape: Shape, *, now: str, without: tuple[str, ...]
) -> None:
    """Note in `new` that an ordinary (non-apply) write made it out of `live`."""
    shares = starting_shares(live, new)
    compared = Comparison(view(live, without), view(new, without), shape)
    if not compared.nothing:
        shares = without_others(shares, writer, compared)
        before = shares.get(writer)
        kept = fields.difference(before.owned, compared.removed) if before else None
        owned = fields.union(fields.union(kept, compared.modified), compared.added)
        shares.pop(writer, None)
        if owned:
            shares[writer] = Share(owned, now)
    write_shares(new, shares)
