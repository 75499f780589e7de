"""The planes of the tests: `plane` is the real API server, `embedded_plane` the one in memory."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.plane import places
from tests.plane.places import Binaries
from tests.plane.planes import Plane, Real, fresh_name
from tests.plane.pod_groups import install_pod_groups
from tests.plane.real import RealPlane

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded


# No example has to be done in 200 ms: how long one takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A process that a shell has put into the background ignores SIGINT, and so does all that it starts: not ours."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_TOGETHER = {
    "tests/flow/podgroups/test_native.py": "native",
    "tests/flow/podgroups/": "kube-scheduler",
    "tests/flow/test_rights_groups": "kube-scheduler",
    "tests/unit/fake/test_scheduler.py": "kube-scheduler",
    "tests/unit/kube/test_contract_outage.py": "outage",
    "tests/page/": "browser",
}
"""Tests of one thing that takes seconds to make and serves many: a control plane of another kind, a browser."""

_BY_FILE = ("tests/chart/", "tests/repo/")
"""Their files keep what they have rendered or read."""


_FIRST = (
    "tests/flow/test_rights.py",
    "tests/flow/test_kills.py",
    "tests/flow/test_channels.py",
    "tests/flow/test_stories.py",
    "tests/flow/webhook/test_rolling_update.py",
    "tests/flow/webhook/test_ca_rotation.py",
)
"""Those that last longest begin early, so that no worker is alone with one of them at the end."""


class _OncePerThing(LoadScopeScheduling):  # type: ignore[misc]  # it ships no type information
    """All tests of such a thing run on one worker, so that it is made once: an idle API server costs time, too."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_BY_FILE):
            return nodeid.partition("::")[0]
        return next((thing for path, thing in _TOGETHER.items() if nodeid.startswith(path)), nodeid)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Otherwise as they were found."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        param = getattr(item, "callspec", None) and item.callspec.params.get("plane", "real")  # type: ignore[attr-defined]
        if "real_plane" in fixtures or ("plane" in fixtures and param in {None, "real"}):
            item.add_marker(pytest.mark.real)
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Instead of what `--dist` says. The marks of xdist's own groups do not reach it with this pytest."""
    return _OncePerThing(config, log)


@pytest.fixture(scope="session")
def control_plane_binaries() -> Binaries:
    """All programs of a control plane, and kubectl. Getting them may take minutes, so not here."""
    found = places.find()
    if isinstance(found, Binaries):
        return found
    seen = "; ".join(f"{unfit.place.name} ({unfit.place.folder}): {unfit.why}" for unfit in found)
    pytest.fail(f"no control plane on this machine; `make control-plane` gets one. Looked at: {seen}")


@pytest.fixture(scope="session")
def _running_plane(control_plane_binaries: Binaries) -> Iterator[RealPlane]:
    with RealPlane(control_plane_binaries, audited=True) as running:
        yield running


@pytest.fixture(scope="session")
def _scheduled_running_plane(control_plane_binaries: Binaries) -> Iterator[RealPlane]:
    with RealPlane(control_plane_binaries, scheduler=True, audited=True, prepare=install_pod_groups) as running:
        yield running


@pytest.fixture
def scheduled_plane(_scheduled_running_plane: RealPlane) -> Real:
    """One with kube-scheduler and the CRDs of pod groups, made when it is first asked for.

    Beside the other, on which whoever plays the scheduler binds the pods.
    """
    return Real(_scheduled_running_plane)


@pytest.fixture
def real_plane(_running_plane: RealPlane) -> Real:
    """The real control plane: one for all tests, so stay in your namespace and clear away what is cluster-wide."""
    return Real(_running_plane)


@pytest.fixture
async def embedded_plane(control_plane_binaries: Binaries, tmp_path: Path) -> AsyncIterator[Embedded]:
    """An embedded API server of the test's own."""
    from jobset_gate.fake.apiserver import ApiServer  # noqa: PLC0415 - the tests of the pure rules need none of it
    from tests.plane.embedded import Embedded  # noqa: PLC0415

    server = ApiServer()
    await server.start()
    try:
        yield Embedded(server, control_plane_binaries["kubectl"], tmp_path)
    finally:
        await server.stop()


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
