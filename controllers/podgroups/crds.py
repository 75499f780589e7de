"""CRDs of PodGroups: creates missing ones, updates its own, and leaves those of others alone (G5)."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import structlog
import yaml

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, NotFound
from jobset_gate.kube.resources import CRDS
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.model import FLAVOR_OF, NEEDS_POD_GROUP, POD_GROUP_APIS, Format
from jobset_gate.runtime.workqueue import Requeue

REVISION: Final = 1
"""Of the manifests; raised with every change, so that an older controller does not revert it."""
MANAGER: Final = f"{names.FIELD_MANAGER}-crds"
"""Our field manager for CRDs."""
MINIMUM_FIELD: Final[Mapping[str, str]] = MappingProxyType(
    {names.PLUGINS_GROUP: "minMember", names.SIGS_GROUP: "minMember", names.KEP24_GROUP: "minMembers"}
)
"""The required field of spec, by API group."""
GROUPS: Final[Mapping[str, str]] = MappingProxyType({f"podgroups.{it}": it for it in MINIMUM_FIELD})
"""API groups by the names of their CRDs."""


def crd_name(group: str) -> str:
    """The name of the CRD of an API group's PodGroups."""
    return f"podgroups.{group}"


def manifest(group: str) -> Json:
    text = files("jobset_gate.podgroups").joinpath("manifests", f"{group}.yaml").read_text(encoding="utf-8")
    found: Json = yaml.safe_load(text)
    return found


def is_ours(crd: Mapping[str, Any]) -> bool:
    """Whether this controller created it and no other field manager has changed its spec."""
    return nested(crd, "metadata", "labels", names.MANAGED_BY_LABEL) == names.PROGRAM and not any(
        entry.get("manager") != MANAGER and "f:spec" in as_map(entry.get("fieldsV1"))
        for entry in map(as_map, as_list(nested(crd, "metadata", "managedFields")))
        if not entry.get("subresource")
    )


def update(crd: Mapping[str, Any]) -> Json:
    """The manifest to apply to an outdated CRD of ours, at this resourceVersion only."""
    made = manifest(GROUPS[crd["metadata"]["name"]])
    return {**made, "metadata": {**made["metadata"], "resourceVersion": crd["metadata"]["resourceVersion"]}}


def needed_crds(ways: Collection[Format]) -> tuple[str, ...]:
    """The names of the CRDs that these formats need. Koordinator also reads those of scheduler-plugins."""
    return tuple(crd_name(POD_GROUP_APIS[FLAVOR_OF[it]][0]) for it in Format if it in ways and it in NEEDS_POD_GROUP)


def revision(crd: Mapping[str, Any]) -> int:
    """Its revision; 0 if it has none."""
    said = nested(crd, "metadata", "annotations", names.POD_GROUP_CRD_REVISION)
    return int(said) if isinstance(said, str) and said.isascii() and said.isdigit() else 0


def why_unusable(crd: Mapping[str, Any]) -> str:
    """Why PodGroups of this CRD cannot be used; "" if they can."""
    name, group = nested(crd, "metadata", "name"), nested(crd, "spec", "group")
    version = next((one for one in _served(crd) if one.get("name") == names.POD_GROUP_VERSION), None)
    if version is None:
        served = ", ".join(str(one.get("name")) for one in _served(crd)) or "nothing"
        return f"the CRD {name} serves {served}, and only {names.POD_GROUP_VERSION} is known here"
    schema = as_map(nested(version, "schema", "openAPIV3Schema"))
    spec = as_map(nested(schema, "properties", "spec"))
    if _is_open(schema) or _is_open(spec) or MINIMUM_FIELD.get(str(group), "") in as_map(spec.get("properties")):
        return ""
    return f"the CRD {name} has no spec.{MINIMUM_FIELD.get(str(group), '')} in {names.POD_GROUP_VERSION}"


def _served(crd: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in map(as_map, as_list(nested(crd, "spec", "versions"))) if one.get("served")]


def _is_open(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


FORBIDDEN_RETRY_SECONDS = 300.0
"""Until a forbidden write is tried again: another client may create the CRD, or none may need it."""

_log = structlog.get_logger(__name__)


class PodGroupCrdOutcome(StrEnum):
    """The result of one reconcile."""

    CREATED = "created"
    UPDATED = "updated"
    CURRENT = "current"
    """Created by jobset-gate, of this version or a newer one."""
    FOREIGN = "foreign"
    """Created by another client, and usable."""
    UNUSABLE = "unusable"
    """Created by another client, and without fields that groups need."""
    LEAVING = "leaving"
    """Terminating."""
    FORBIDDEN = "forbidden"


class PodGroupCrdReconciler:
    """The keys of its queue are names of CRDs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.problems: dict[str, str] = {}
        """By API group: why its PodGroups cannot be used."""

    async def reconcile(self, name: str) -> float | None:
        """Returns the seconds until the next reconcile, if the CRD does not change before."""
        try:
            outcome, why = await self._reconcile(name)
        except Forbidden as refused:
            outcome, why = PodGroupCrdOutcome.FORBIDDEN, f"the CRD {name} may not be reconciled: {refused.message}"
        self.problems.pop(GROUPS[name], None)
        if why:
            self.problems[GROUPS[name]] = why
        log = _log.warning if why else _log.info
        log("CRD of pod groups reconciled", crd=name, outcome=outcome.value, **({"trouble": why} if why else {}))
        return FORBIDDEN_RETRY_SECONDS if outcome is PodGroupCrdOutcome.FORBIDDEN else None

    async def _reconcile(self, name: str) -> tuple[PodGroupCrdOutcome, str]:
        """The outcome, and why PodGroups of this CRD cannot be used, if so."""
        try:
            crd = await self._client.get(CRDS, name)
        except NotFound:
            # Applied: RBAC cannot grant create by name. If another client was faster, its fields conflict.
            await self._apply(name, manifest(GROUPS[name]), force=False)
            return PodGroupCrdOutcome.CREATED, ""
        if "deletionTimestamp" in crd["metadata"]:
            return PodGroupCrdOutcome.LEAVING, ""  # the informer reports the deletion
        if not is_ours(crd):
            why = why_unusable(crd)
            return (PodGroupCrdOutcome.UNUSABLE if why else PodGroupCrdOutcome.FOREIGN), why
        if revision(crd) >= REVISION:
            return PodGroupCrdOutcome.CURRENT, ""
        await self._apply(name, update(crd), force=True)
        return PodGroupCrdOutcome.UPDATED, ""

    async def _apply(self, name: str, body: Json, *, force: bool) -> None:
        try:
            await self._client.patch(CRDS, name, body=body, patch=PatchType.APPLY, field_manager=MANAGER, force=force)
        except (Conflict, NotFound) as lost:
            raise Requeue(str(lost)) from lost
