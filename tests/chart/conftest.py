"""The two Helms: `helm` runs a test with Helm 3 and again with Helm 4, `helm4` is enough where both render the same."""

from pathlib import Path

import pytest

from tests.chart.helm import Helm
from tests.tools import catalog


def _helm(major: int, home: Path) -> Helm:
    return Helm(major, catalog.helm(major), home)


@pytest.fixture(scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("helm")


@pytest.fixture(scope="session", params=[3, 4], ids=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest, _home: Path) -> Helm:
    """Helm 3, then Helm 4. That both make the same of the same values is what test_objects.py says."""
    return _helm(request.param, _home)


@pytest.fixture(scope="session")
def helm4(_home: Path) -> Helm:
    """Helm 4 alone."""
    return _helm(4, _home)


@pytest.fixture(scope="session")
def other_helm(helm: Helm, _home: Path) -> Helm:
    """The one that `helm` is not."""
    return _helm(7 - helm.major, _home)
