"""What the scenarios of `make e2e` rely on: the judge of their logs, and that a user's own release is left alone."""

import pytest

from e2e import commands, gate
from e2e.cluster import E2eCluster
from e2e.gangs import PRINTS_START
from e2e.helm import HelmRelease
from e2e.logs import LogLine, check_all_started_before_any_ran
from jobset_gate import names


def barrier(pod: str, at: float) -> LogLine:
    return LogLine(pod, names.BARRIER_CONTAINER, at, "waiting for the gang to start")


def main(pod: str, at: float) -> LogLine:
    return LogLine(pod, "main", at, PRINTS_START)


def test_a_gang_in_order_passes_and_its_release_is_measured() -> None:
    lines = [barrier("a", 1), barrier("b", 5), main("b", 5.5), main("a", 6)]
    assert check_all_started_before_any_ran(lines, 2) == 1


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([barrier("a", 1), main("a", 4.9), barrier("b", 5), main("b", 6)], "before the last pod was there: {'a'"),
        ([barrier("a", 1), main("a", 2), main("b", 2)], "1 of 2 barriers"),
        ([barrier("a", 1), barrier("b", 1), main("a", 2), LogLine("b", "main", 2, "oh no")], "1 of 2 main containers"),
        ([], "0 of 2 barriers"),
    ],
)
def test_what_is_out_of_order_is_named(lines: list[LogLine], complaint: str) -> None:
    with pytest.raises(AssertionError, match=r"of 2|before") as refused:
        check_all_started_before_any_ran(lines, 2)
    assert complaint in str(refused.value)


class EmptyCluster(E2eCluster):
    """A cluster in which there is nothing that the suite has made."""

    def kubectl(self, *args: str, stdin: str | None = None, seconds: float = 0) -> str:
        assert "apply" not in args
        return "namespace/default\n"


def test_a_release_that_the_suite_has_not_made_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HelmRelease, "exists", lambda _: True)
    with pytest.raises(
        commands.CommandFailed, match="is in jobset-gate-system already, and not put there by this suite"
    ):
        gate.install(EmptyCluster("a.kubeconfig"), {})
