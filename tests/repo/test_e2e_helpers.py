"""What the scenarios of `make e2e` rely on: the judge of their logs, what counts as left behind, and clearing up."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e import commands, gate, logs
from e2e.cluster import E2eCluster
from e2e.gangs import PRINTS_START
from e2e.helm import HelmRelease
from e2e.leftovers import ours
from e2e.logs import LogLine, check_all_started_before_any_ran
from jobset_gate import names
from tests.repo.files import ROOT

NESTED = 'sleep 600 & echo "$!" > "$0"; wait'


# --- Logs: no main container runs before the last barrier has started ------------------------------------------------


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
    assert (second.container, second.text) == ("main", "main is running")
    assert second.at - first.at == pytest.approx(1.283751, abs=1e-5)


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


# --- Left behind -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("<none>  ClusterRole  any  jobset-gate", ["ClusterRole/any"]),
        ("default  Role  jobset-gate-dry-run  jobset-gate", ["Role/jobset-gate-dry-run"]),
        ("jobset-gate-system  Secret  any  <none>", ["Secret/any"]),
        (
            "<none>  MutatingWebhookConfiguration  zz-jobset-gate  <none>",
            ["MutatingWebhookConfiguration/zz-jobset-gate"],
        ),
        ("jobset-gate-system  ConfigMap  kube-root-ca.crt  <none>", []),
        ("<none>  Namespace  jobset-gate-system  <none>", []),
        ("<none>  Node  jobset-gate-e2e-worker  <none>", []),
        ("e2e-story1  ConfigMap  gang-group-scheduling  <none>", []),
    ],
)
def test_ours_by_label_by_namespace_or_by_name_is_left_behind(line: str, found: list[str]) -> None:
    assert list(ours(line)) == found


# --- Programs --------------------------------------------------------------------------------------------------------


def ended(process: int, within: float = 30.0) -> bool:
    """Whether it ends in so many seconds."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def test_a_signal_ends_what_was_started_and_clears_up(tmp_path: Path) -> None:
    note = tmp_path / "child"
    os.mkfifo(note)
    program = (
        "import sys\nfrom e2e import commands\ncommands.handle_signals()\n"
        "try: commands.show('sh', '-c', sys.argv[1], sys.argv[2], seconds=60)\n"
        "finally: print('cleared up', flush=True)\n"
    )
    command = [sys.executable, "-c", program, NESTED, str(note)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:  # noqa: S603
        child = int(note.read_text())
        started.send_signal(signal.SIGTERM)
        out, _ = started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert "cleared up" in out
    assert ended(child)


# --- Installing -------------------------------------------------------------------------------------------------------


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
