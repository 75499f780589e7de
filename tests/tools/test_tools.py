"""The tools of the tests are here, or what gets them fails."""

import pytest

from tests.tools.__main__ import main
from tests.tools.catalog import TOOLS


def test_what_make_tools_promises_is_here_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TOOLS)
