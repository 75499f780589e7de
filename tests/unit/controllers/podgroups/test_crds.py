"""CRDs of PodGroups, where the API server refuses a write or another client is faster."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from controllers.podgroups import crds
from controllers.podgroups.crds import FORBIDDEN_RETRY_SECONDS, PodGroupCrdReconciler
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, NotFound
from jobset_gate.runtime.workqueue import Requeue

NAME = crds.crd_name(names.PLUGINS_GROUP)
Json = dict[str, Any]


class CrdApi:
    """Answers what a test sets, and keeps what was applied."""

    def __init__(self, stored: Json | type[ApiError], applied: type[ApiError] | None = None) -> None:
        self.stored, self._applied = stored, applied
        self.applied: list[tuple[Json, bool]] = []

    @property
    def client(self) -> Client:
        return cast("Client", self)

    async def get(self, *_: object) -> Json:
        if isinstance(self.stored, dict):
            return self.stored
        raise refusal(self.stored)

    async def patch(self, *_: object, body: Json, force: bool, **__: object) -> Json:
        self.applied.append((body, force))
        if self._applied is not None:
            raise refusal(self._applied)
        return body


def refusal(kind: type[ApiError]) -> ApiError:
    return kind(403, "Reason", "so it is")


def stored(change: Callable[[Json], object] = lambda _: None) -> Json:
    crd = crds.manifest(names.PLUGINS_GROUP)
    crd["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    change(crd)
    return crd


def older(crd: Json) -> None:
    crd["metadata"]["annotations"][names.POD_GROUP_CRD_REVISION] = "0"


@pytest.mark.parametrize("api", [CrdApi(Forbidden), CrdApi(NotFound, Forbidden)], ids=["read", "create"])
async def test_what_is_forbidden_is_reported_and_tried_again_later(api: CrdApi) -> None:
    reconciler = PodGroupCrdReconciler(api.client)
    assert await reconciler.reconcile(NAME) == FORBIDDEN_RETRY_SECONDS
    assert "may not be reconciled" in reconciler.problems[names.PLUGINS_GROUP]


async def test_trouble_that_is_over_is_forgotten() -> None:
    world = CrdApi(Forbidden)
    reconciler = PodGroupCrdReconciler(world.client)
    await reconciler.reconcile(NAME)
    world.stored = stored()
    await reconciler.reconcile(NAME)
    assert reconciler.problems == {}


@pytest.mark.parametrize(("there", "force"), [(NotFound, False), (stored(older), True)])
async def test_where_another_client_was_faster_it_is_requeued(there: Json | type[ApiError], force: bool) -> None:
    """What is not there yet is made without force, so that another's fields are not taken over."""
    world = CrdApi(there, Conflict)
    with pytest.raises(Requeue):
        await PodGroupCrdReconciler(world.client).reconcile(NAME)
    assert [forced for _, forced in world.applied] == [force]


async def test_one_that_is_being_deleted_is_not_touched() -> None:
    def leave(crd: Json) -> None:
        older(crd)
        crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    world = CrdApi(stored(leave))
    assert await PodGroupCrdReconciler(world.client).reconcile(NAME) is None
    assert world.applied == []
