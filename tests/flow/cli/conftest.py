"""Command lines against the real API server, in which nothing acts: each test stores what it needs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli_runner import CliShell, RunCli, restored_logs, run
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd
from tests.fakes.stored_pod_groups import StoredPodGroups, install_pod_group_crds, kubeconfig_of
from tests.plane.embedded import Embedded
from tests.plane.planes import Plane, Real

__all__ = ["restored_logs", "run"]

LimitedUser = Callable[[list[dict[str, Any]]], Awaitable[Path]]


@pytest.fixture
async def stored(plane: Plane, namespace: str) -> AsyncIterator[StoredJobSet]:
    """The gang `train` of a namespace."""
    async with plane.client() as client:
        yield StoredJobSet(client, namespace)


@pytest.fixture
def groups(stored: StoredJobSet) -> StoredPodGroups:
    """The pod groups of that namespace."""
    return StoredPodGroups(stored.client, stored.namespace)


@pytest.fixture
def cli(run: RunCli, plane: Plane, namespace: str) -> CliShell:
    """Any command line."""
    return CliShell(run, plane.kubeconfig, namespace)


@pytest.fixture
def limited(real_plane: Real, namespace: str, tmp_path: Path) -> LimitedUser:
    """The kubeconfig of a user who has these rules in the namespace, and nothing else."""
    return lambda rules: kubeconfig_of(real_plane, namespace, rules, tmp_path)


@pytest.fixture
async def alone(embedded_plane: Embedded) -> AsyncIterator[StoredPodGroups]:
    """Namespace `team` of a cluster of its own, for what one test may not show another: a Lease, say."""
    for name in ("sys", "team"):
        await embedded_plane.make_namespace(name)
    async with embedded_plane.client() as client:
        await install_jobset_crd(client, "team")
        await install_pod_group_crds(client)
        yield StoredPodGroups(client, "team")


@pytest.fixture
def cli_alone(run: RunCli, alone: StoredPodGroups, embedded_plane: Embedded) -> CliShell:
    """Command lines against that cluster."""
    return CliShell(run, embedded_plane.kubeconfig, alone.namespace)
