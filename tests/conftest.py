"""The planes of the tests: `plane` is the real API server, `embedded_plane` the one in memory."""

from __future__ import annotations

import gc
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.plane import lanes, places
from tests.plane.kinds import install_all, install_pod_groups
from tests.plane.places import Binaries
from tests.plane.planes import Plane, Real, fresh_name
from tests.plane.real import RealPlane
from tests.plane.shared import SharedPlanes, attach

if TYPE_CHECKING:
    from jobset_gate.kube.client import Client
    from tests.plane.embedded import Embedded


# No example has to be done in 200 ms: how long one takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
PLANES = pytest.StashKey[str]()
"""Where the shared planes are to be had; see tests/plane/shared.py."""
_OWNER = pytest.StashKey[SharedPlanes]()
_SHARED: dict[str, dict[str, Any]] = {
    "plain": {"prepare": install_all},
    "scheduled": {"prepare": install_all, "scheduler": True},
}
_OWN: dict[str, dict[str, Any]] = {
    lanes.CLUSTER: {},
    lanes.SCHEDULED_CLUSTER: {"prepare": install_pod_groups, "scheduler": True},
    lanes.NATIVE: {"prepare": install_pod_groups, "scheduler": True, "features": ("GenericWorkload", "GangScheduling")},
    lanes.OUTAGE: {"controllers": False},
}
_of_lanes: dict[str, RealPlane] = {}
"""Those that run, by the lane whose own they are."""


def pytest_configure(config: pytest.Config) -> None:
    """A process that a shell has put into the background ignores SIGINT, and so does all that it starts: not ours."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are found: nothing of them is garbage
    worker: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker is None:
        config.stash[_OWNER] = SharedPlanes(_SHARED)
    config.stash[PLANES] = config.stash[_OWNER].address if worker is None else worker["planes"]


def pytest_configure_node(node: WorkerController) -> None:
    """A worker of pytest-xdist is about to start."""
    node.workerinput["planes"] = node.config.stash[PLANES]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWNER in config.stash:
        config.stash[_OWNER].stop()


class _Lanes(LoadScopeScheduling):  # type: ignore[misc]  # it ships no type information
    def _split_scope(self, nodeid: str) -> str:
        return lanes.scope(nodeid)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the real plane are marked; otherwise in the order in which they were found."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        param = getattr(item, "callspec", None) and item.callspec.params.get("plane", "real")  # type: ignore[attr-defined]
        if "real_plane" in fixtures or ("plane" in fixtures and param in {None, "real"}):
            item.add_marker(pytest.mark.real)
    items.sort(key=lambda item: lanes.place(item.nodeid))


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: no collection of garbage has to look through them."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A lane's own plane goes with the last test of the lane: idle, it would take its share of a processor."""
    ended = lanes.lane(item.nodeid)
    if ended in _of_lanes and (nextitem is None or lanes.lane(nextitem.nodeid) != ended):
        _of_lanes.pop(ended).stop()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Instead of what `--dist` says. The marks of xdist's own groups do not reach it with this pytest."""
    return _Lanes(config, log)


@pytest.fixture(scope="session")
def control_plane_binaries() -> Binaries:
    """All programs of a control plane, and kubectl. Getting them may take minutes, so not here."""
    try:
        return places.find()
    except places.Unfit as unfit:
        pytest.fail(f"no control plane on this machine; `make control-plane` gets one. Looked at: {unfit}")


@pytest.fixture(scope="session")
def _shared_plane(control_plane_binaries: Binaries, pytestconfig: pytest.Config) -> RealPlane:
    return attach(pytestconfig.stash[PLANES], "plain")


@pytest.fixture(scope="session")
def _shared_scheduled_plane(control_plane_binaries: Binaries, pytestconfig: pytest.Config) -> RealPlane:
    return attach(pytestconfig.stash[PLANES], "scheduled")


def _own_plane(binaries: Binaries, lane: str) -> RealPlane:
    if lane not in _of_lanes:
        _of_lanes[lane] = RealPlane(binaries, audited=True, **_OWN[lane]).start()
    return _of_lanes[lane]


@pytest.fixture(scope="module")
def real_plane(request: pytest.FixtureRequest, control_plane_binaries: Binaries) -> Real:
    """The real control plane that all workers share; that of the lane for tests of a lane with its own."""
    lane = lanes.lane(request.node.nodeid)
    if lane in _OWN:
        return Real(_own_plane(control_plane_binaries, lane))
    return Real(request.getfixturevalue("_shared_plane"))


@pytest.fixture(scope="module")
def scheduled_plane(request: pytest.FixtureRequest) -> Real:
    """One with kube-scheduler: on the other, tests that play the scheduler bind the pods. Shared likewise."""
    if lanes.lane(request.node.nodeid) == lanes.SCHEDULED_CLUSTER:
        own: Real = request.getfixturevalue("real_plane")
        return own
    return Real(request.getfixturevalue("_shared_scheduled_plane"))


@pytest.fixture
async def embedded_plane(control_plane_binaries: Binaries, tmp_path: Path) -> AsyncIterator[Embedded]:
    """An embedded API server of the test's own."""
    from jobset_gate_demo.fake.apiserver import ApiServer  # noqa: PLC0415 - the tests of the pure rules need none of it
    from tests.fakes.faults import Faults  # noqa: PLC0415
    from tests.plane.embedded import Embedded  # noqa: PLC0415

    faults = Faults()
    async with ApiServer(hooks=faults) as server:
        yield Embedded(server, faults, control_plane_binaries["kubectl"], tmp_path)


@pytest.fixture
def plane(request: pytest.FixtureRequest) -> Plane:
    """The real API server. A test that needs no more than the embedded one says so: `parametrize("plane", ...)`."""
    made: Plane = request.getfixturevalue(f"{getattr(request, 'param', 'real')}_plane")
    return made


@pytest.fixture
async def namespace(plane: Plane) -> AsyncIterator[str]:
    """The name of a fresh namespace on `plane`; asked to go afterwards."""
    name = fresh_name()
    await plane.make_namespace(name)
    yield name
    await plane.drop_namespace(name)


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    """An administrator's client of `plane`."""
    async with plane.client() as made:
        yield made
