"""CRDs of PodGroups: whose they are, whether groups can be said with them, and what a refused write leads to (G5)."""

from collections.abc import Callable
from typing import Any

import pytest

from controllers.podgroups import crds
from controllers.podgroups.crds import FORBIDDEN_RETRY_SECONDS, PodGroupCrdReconciler
from jobset_gate import names
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups.model import Format
from jobset_gate.runtime.workqueue import Requeue
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import Call, MemoryClient

PLUGINS, SIGS, KEP24 = names.PLUGINS_GROUP, names.SIGS_GROUP, names.KEP24_GROUP
NAME = crds.crd_name(PLUGINS)
Json = dict[str, Any]


def crd_of(group: str = PLUGINS, **metadata: Any) -> Json:
    """Ours, as an API server gives it back."""
    crd = crds.manifest(group)
    crd["metadata"] |= {"resourceVersion": "7", "uid": "u"} | metadata
    return crd


OLD = {names.POD_GROUP_CRD_REVISION: "0"}


def refused(verb: str, kind: type[ApiError]) -> Callable[[Call], ApiError | None]:
    return lambda call: kind(403, "Reason", "so it is") if call.verb == verb else None


@pytest.mark.parametrize("verb", ["get", "patch"], ids=["read", "create"])
async def test_what_is_forbidden_is_reported_and_tried_again_later_and_forgotten_when_it_is_over(
    api: Api, memory: MemoryClient, api_calls: CallBlocker, verb: str
) -> None:
    api_calls.fail = refused(verb, Forbidden)
    reconciler = PodGroupCrdReconciler(memory.client)
    assert await reconciler.reconcile(NAME) == FORBIDDEN_RETRY_SECONDS
    assert "may not be reconciled" in reconciler.problems[PLUGINS]
    api_calls.fail = lambda _: None
    api.put(CRDS, crd_of())
    await reconciler.reconcile(NAME)
    assert reconciler.problems == {}


@pytest.mark.parametrize(("there", "force"), [((), False), ((crd_of(annotations=OLD),), True)])
async def test_where_another_client_was_faster_it_is_requeued(
    api: Api, memory: MemoryClient, api_calls: CallBlocker, there: tuple[Json, ...], force: bool
) -> None:
    """What is not there yet is made without force, so that another's fields are not taken over."""
    for crd in there:
        api.put(CRDS, crd)
    api_calls.fail = refused("patch", Conflict)
    with pytest.raises(Requeue):
        await PodGroupCrdReconciler(memory.client).reconcile(NAME)
    assert [it.force for it in api_calls.calls if it.verb == "patch"] == [force]


async def test_one_that_is_being_deleted_is_not_touched(api: Api, memory: MemoryClient, api_calls: CallBlocker) -> None:
    api.put(CRDS, crd_of(annotations=OLD, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert await PodGroupCrdReconciler(memory.client).reconcile(NAME) is None
    assert [it.verb for it in api_calls.calls] == ["get"]


def fields(manager: str, part: str = "f:spec", **more: str) -> Json:
    """Who has written what, as managedFields have it."""
    return {"manager": manager, "fieldsV1": {part: {}}, **more}


@pytest.mark.parametrize(
    ("others", "ours"),
    [
        ([], True),
        ([fields(crds.MANAGER), fields("kube-apiserver", "f:status", subresource="status")], True),
        ([fields(crds.MANAGER), fields("kubectl-annotate", "f:metadata")], True),
        ([fields(crds.MANAGER), fields("helm")], False),
        ([fields("kubectl-edit")], False),
    ],
)
def test_one_of_ours_is_ours_until_another_user_writes_another_spec_into_it(others: list[Json], ours: bool) -> None:
    assert crds.is_ours(crd_of(managedFields=others)) is ours
    assert not crds.is_ours(crd_of(managedFields=others, labels={names.MANAGED_BY_LABEL: "Helm"}))


@pytest.mark.parametrize(
    ("said", "old"), [("0", True), (None, True), ("later", True), (str(crds.REVISION), False), ("99", False)]
)
async def test_only_one_that_is_older_than_we_know_it_is_updated_and_keeps_what_others_noted(
    api: Api, memory: MemoryClient, said: str | None, old: bool
) -> None:
    notes = {"theirs": "x"} | ({} if said is None else {names.POD_GROUP_CRD_REVISION: said})
    there = api.put(CRDS, crd_of(annotations=notes))
    await PodGroupCrdReconciler(memory.client).reconcile(NAME)
    updates = [it.body for it in memory.calls if it.verb == "patch"]
    assert len(updates) == (1 if old else 0)
    for update in updates:
        assert update["metadata"]["resourceVersion"] == there["metadata"]["resourceVersion"]
        assert update["spec"] == crds.manifest(PLUGINS)["spec"]
    revision = str(crds.REVISION) if old else said
    assert api.known(CRDS, NAME)["metadata"]["annotations"] == notes | {names.POD_GROUP_CRD_REVISION: revision}


def changed(group: str, **version: Any) -> Json:
    crd = crd_of(group)
    crd["spec"]["versions"][0] |= version
    return crd


ANY_FIELD = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("crd", "why"),
    [
        (crd_of(KEP24), ""),
        (changed(SIGS, served=False), "serves nothing, and only v1alpha1"),
        (changed(KEP24, schema={"openAPIV3Schema": {"type": "object"}}), "has no spec.minMembers in v1alpha1"),
        (changed(SIGS, schema={"openAPIV3Schema": ANY_FIELD}), ""),
        (changed(SIGS, schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": ANY_FIELD}}}), ""),
        ({"metadata": {"name": "podgroups.x"}, "spec": {"group": PLUGINS, "versions": "nonsense"}}, "serves nothing"),
    ],
)
def test_a_crd_with_which_groups_cannot_be_said_is_reported(crd: Json, why: str) -> None:
    reported = crds.why_unusable(crd)
    assert (why in reported) if why else (reported == "")


def test_only_the_ways_that_have_pod_groups_need_crds() -> None:
    assert set(crds.needed_crds(list(Format))) == set(crds.GROUPS)
    assert crds.needed_crds([Format.ALIBABA, Format.KOORDINATOR_ANNOTATIONS]) == ()
    assert crds.needed_crds([Format.KEP_24]) == ("podgroups.incubator.scheduling.k8s.io",)
