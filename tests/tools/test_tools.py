"""A tool that is here is found, one that a user names comes first, and one that cannot be had says what to do."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools import debian
from tests.tools.__main__ import main
from tests.tools.catalog import PROMTOOL, TOOLS, Env, Say, ToolNotFound


def test_what_make_tools_promises_is_here_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TOOLS)
    assert main(["hammer"]) == 2


def program(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'promtool, version {version}'\n")
    path.chmod(0o755)
    return path


def test_one_that_is_missing_is_got_once_and_one_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "/nowhere"}

    def unavailable(output: Path, say: Say, env: Env) -> str:
        raise debian.PackageUnavailable("there is no apt-get here")

    with pytest.raises(ToolNotFound, match=r"no apt-get here; put promtool .* or its path into PROMTOOL"):
        replace(PROMTOOL, get=unavailable).provide(env)
    assert not PROMTOOL.cached(env).parent.exists(), "nothing half done stays"

    def newer(output: Path, say: Say, env: Env) -> str:
        return str(program(output, "2.60.0"))

    assert replace(PROMTOOL, get=newer).provide(env) == (PROMTOOL.cached(env), "our cache, 2.60.0")
    assert replace(PROMTOOL, get=unavailable).provide(env)[0] == PROMTOOL.cached(env)
