"""Server-side apply: merge a configuration into the live object, with owners, conflicts and removal."""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver import fields
from jobset_gate.fake.apiserver.encoding import Obj, copy
from jobset_gate.fake.apiserver.fields import Comparison, Tree
from jobset_gate.fake.apiserver.managed import (
    FieldManager,
    Share,
    Shares,
    shares_of,
    view,
    without_others,
    write_shares,
)
from jobset_gate.fake.apiserver.shapes import Shape
from jobset_gate.fake.apiserver.status_errors import StatusError, cause


def apply(
    live: Obj, config: Obj, writer: FieldManager, shape: Shape, *, now: str, without: tuple[str, ...], force: bool
) -> Obj:
    """The object that `config` makes of `live`, its managedFields up to date.

    A new object is applied to {"apiVersion", "kind", "metadata": {"name", "namespace"}}.
    Errors: Problem 409 that names every conflicting field and its owner, unless `force`.
    """
    shares = shares_of(live)
    last = shares.get(writer)
    owned = fields.of(view(config, without), shape) or {}
    kept = {key: value for key, value in config.items() if key not in without}
    new: Obj = merge(live, kept, shape)
    shares[writer] = Share(owned, now)
    if last is not None:
        everyone: Tree | None = None
        for share in shares.values():
            everyone = fields.union(everyone, share.owned)
        _give_up(new, last.owned, everyone, shape)
    compared = Comparison(view(live, without), view(new, without), shape)
    if not force:
        _refuse_conflicts(shares, writer, compared)
    shares = without_others(shares, writer, compared)
    if compared.nothing and last is not None and last.owned == owned:
        shares[writer] = last
    write_shares(new, shares)
    return new


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """`config` laid over `live`; neither is changed."""
    if type(live) is not type(config) or not fields.merges(config, shape):
        return copy(config)
    if isinstance(config, dict):
        merged = {name: copy(value) for name, value in live.items() if name not in config}
        over = {name: merge(live.get(name), value, shape.at(name)) for name, value in config.items()}
        return {**{name: over.get(name, merged.get(name)) for name in live}, **over}
    return _merge_items(live, config, shape)


def _merge_items(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Shared items come in the order of `config`; what only one side has stays between its neighbours there."""
    before, wanted = fields.indexed(live, shape), fields.indexed(config, shape)
    shared = [step for step in wanted if step in before]
    left, right = list(before), list(wanted)
    merged: list[Any] = []
    while left:
        step = left[0]
        if step not in wanted:
            merged.append(copy(before[left.pop(0)]))
        elif step not in shared or step != shared[0]:
            # Already there, or its turn comes later.
            left.pop(0)
        else:
            # Everything of the configuration up to this item.
            while step in shared:
                merged.append(merge(before.get(right[0]), wanted[right[0]], shape.item()))
                if right.pop(0) == shared[0]:
                    shared.pop(0)
    return merged + [merge(before.get(step), wanted[step], shape.item()) for step in right]


def _give_up(value: Any, last: Tree, everyone: Tree | None, shape: Shape) -> None:
    """Remove from `value` what its applier owned `last` and nobody owns now."""
    if not fields.merges(value, shape):
        return
    for step in fields.steps(last):
        still = (everyone or {}).get(step)
        gone = still is None and fields.is_member(last[step])
        if isinstance(value, dict):
            _give_up_field(value, step.removeprefix("f:"), last[step], still, shape, gone=gone)
        else:
            _give_up_item(value, step, last[step], still, shape, gone=gone)


def _give_up_field(value: Obj, name: str, last: Tree, still: Tree | None, shape: Shape, *, gone: bool) -> None:
    if name not in value:
        return
    if not gone:
        _give_up(value[name], last, still, shape.at(name))
        gone = still is None and value[name] in ({}, [])
    if gone:
        del value[name]


def _give_up_item(value: list[Any], step: str, last: Tree, still: Tree | None, shape: Shape, *, gone: bool) -> None:
    for place, item in enumerate(value):
        if fields.item_step(item, shape) != step:
            continue
        if gone:
            del value[place]
        else:
            _give_up(item, last, still, shape.item())
        return


def _refuse_conflicts(shares: Shares, writer: FieldManager, compared: Comparison) -> None:
    changed = fields.union(compared.added, compared.modified)
    against: dict[str, list[str]] = {}
    for manager, share in shares.items():
        if manager == writer:
            continue
        if fought := fields.paths(fields.intersection(share.owned, changed)):
            against[_who(manager)] = fought
    if not against:
        return
    causes = [
        cause(path, f"conflict with {who}", "FieldManagerConflict")
        for who, fought in against.items()
        for path in fought
    ]
    count = len(causes)
    text = "\n".join(_told(who, fought, alone=count == 1) for who, fought in against.items())
    message = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: {text}"
    raise StatusError(409, message, details={"causes": causes})


def _who(manager: FieldManager) -> str:
    subresource = f' with subresource "{manager.subresource}"' if manager.subresource else ""
    how = f" using {manager.api_version}" if manager.operation == "Update" else ""
    return f'"{manager.name}"{subresource}{how}'


def _told(who: str, fought: list[str], *, alone: bool) -> str:
    if alone:
        return f"conflict with {who}: {fought[0]}"
    return f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in fought)
