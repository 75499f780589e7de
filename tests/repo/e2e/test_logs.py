"""The scenarios' referee: it notices a main container that runs too early, and a pod that says nothing."""

import pytest

from e2e import logs
from e2e.gangs import PRINTS_START
from e2e.logs import LogLine, check_all_started_before_any_ran
from jobset_gate import names


def barrier(pod: str, at: float) -> LogLine:
    return LogLine(pod, names.BARRIER_CONTAINER, at, "waiting for the gang to start")


def main(pod: str, at: float) -> LogLine:
    return LogLine(pod, "main", at, PRINTS_START)


def test_lines_of_kubectl_are_read_to_the_microsecond() -> None:
    text = (
        "[pod/gang-workers-0-0-abcde/group-scheduling-init] 2026-11-21T13:24:20.216249123Z waiting for the gang\n"
        'error: container "main" in pod "gang-workers-0-1-fghij" is waiting to start: PodInitializing\n'
        "[pod/gang-workers-0-0-abcde/main] 2026-11-21T13:24:21.5Z main is running\n"
    )
    first, second = logs.parse(text)
    assert (first.pod, first.container) == ("gang-workers-0-0-abcde", "group-scheduling-init")
    assert first.text == "waiting for the gang"
    assert (second.container, second.text) == ("main", "main is running")
    assert second.at - first.at == pytest.approx(1.283751, abs=1e-5)


def test_a_gang_in_order_passes_and_its_release_is_measured() -> None:
    lines = [barrier("a", 1), barrier("b", 5), main("b", 5.5), main("a", 6)]
    assert check_all_started_before_any_ran(lines, 2) == 1


def test_only_a_barriers_first_line_is_its_start() -> None:
    lines = [barrier("a", 1), main("a", 2), LogLine("a", names.BARRIER_CONTAINER, 3, "released")]
    assert check_all_started_before_any_ran(lines, 1) == 1


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([barrier("a", 1), main("a", 4.9), barrier("b", 5), main("b", 6)], "before the last pod was there: {'a'"),
        ([barrier("a", 1), main("a", 2), main("b", 2)], "1 of 2 barriers"),
        ([barrier("a", 1), barrier("b", 1), main("a", 2)], "1 of 2 main containers"),
        ([barrier("a", 1), barrier("b", 1), main("a", 2), LogLine("b", "main", 2, "oh no")], "1 of 2 main containers"),
        ([], "0 of 2 barriers"),
    ],
)
def test_whatever_is_out_of_order_is_named(lines: list[LogLine], complaint: str) -> None:
    with pytest.raises(AssertionError, match=r"of 2|before") as refused:
        check_all_started_before_any_ran(lines, 2)
    assert complaint in str(refused.value)
