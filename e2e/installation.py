"""Everything that the scenarios need in the cluster, and removes all of it again where that is wanted."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e import gate, images, jobset
from e2e.cluster import E2eCluster
from e2e.environment import Environment
from e2e.extended_resource import MARK

GONE_SECONDS = 180


@contextmanager
def installed(it: E2eCluster, reports: Path, *, remove: bool) -> Iterator[Environment]:
    """Images, JobSet and jobset-gate. `remove`: afterwards the cluster is as it was before."""
    found, kinds = jobset.stands(it), gate.pod_group_kinds(it)
    with _timed("images and nodes"):
        image, small = images.ours(it.kind or "e2e"), images.small()
        images.load(it, image, small)
        it.wait_settled()
    steady, stand_in = it.steady_node(), False
    try:
        with _timed("JobSet"):
            stand_in = jobset.install(it, image, steady)
        with _timed("jobset-gate"):
            gate.install(it, gate.values(image, small, steady))
        yield Environment(it.kubeconfig, it.kind, image, small, str(reports), steady, stand_in)
    finally:
        if remove:
            _leave_nothing(it)
            gate.uninstall(it)
            gate.forget_kinds(it, gate.pod_group_kinds(it) - kinds)
            if not found:
                jobset.uninstall(it, stand_in=stand_in)


def _leave_nothing(it: E2eCluster) -> None:
    """Deletes the scenarios' namespaces while their pods can still be removed."""
    it.kubectl("delete", "namespaces", f"--selector={MARK}", f"--timeout={GONE_SECONDS}s", seconds=GONE_SECONDS + 10)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Says how long it took."""
    began = time.monotonic()
    yield
    print(f"{what}: ready after {time.monotonic() - began:.0f}s", flush=True)
