"""The rules hold for every source: their tests run with each row of the table (K1)."""

from __future__ import annotations

import pytest

from jobset_gate.sources.table import SOURCES
from tests.fakes import gangs


@pytest.fixture(params=SOURCES)
def each_source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload, its Jobs, pods and ConfigMap are of this source."""
    monkeypatch.setattr(gangs, "source", SOURCES[request.param])
