"""`make stress` plays schedules on all cores and says which are wrong, and how to see one again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from tests.stress import run
from tests.stress.world.schedule import Schedule


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def long_ones_fail(schedule: Schedule) -> None:
    if len(schedule.steps) >= 60:
        raise AssertionError("too long")


def test_it_plays_as_many_as_asked_for_in_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--schedules", "6", "--jobs", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" schedules in ")[0] for line in said] == [
        "jobset: 6",
        "job: 6",
        "startgroup: 6",
        "attempts: 6",
    ]


def test_what_fails_is_named_by_its_number_and_cut_down(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "play", long_ones_fail)
    assert run.main(["--source", "job", "--schedules", "50", "--jobs", "1"]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("job, seed ")]
    assert 0 < len(failed) <= run.MOST_FAILED
    seed, _, why = failed[0].removeprefix("job, seed ").partition(": ")
    assert why.startswith("AssertionError: too long")
    assert run.main(["--source", "job", "--seed", seed]) == 1
    out = capsys.readouterr().out
    assert f'again: make stress STRESS_ARGS="--source job --seed {seed}"' in out
    assert out.count("Step(") == 60, "no step is left that it does not take"
