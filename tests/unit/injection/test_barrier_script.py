"""barrier.sh under the shells that it has to run in: the verdicts it obeys, its output, its exit (A5, A6, A7)."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind
from jobset_gate.barrier.verdict_codec import render
from jobset_gate.injection import container, prefetch
from tests.fakes import barrier_process
from tests.fakes.barrier_process import SHELLS, UID, BarrierProcess, release, timeout
from tests.fakes.eventually import PATIENCE


@pytest.fixture(params=SHELLS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BarrierProcess]:
    """A barrier in each of the shells; all of them have to be installed."""
    with barrier_process.barrier_process(request.param, tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", ["verdict", "annotation"])
def test_a_release_that_comes_later_opens_the_gate(held: BarrierProcess, name: str) -> None:
    process = held.waiting()
    held.write(name, release())
    assert process.communicate(timeout=PATIENCE) == ("released\n", "")
    assert process.returncode == 0
    assert not held.log.exists()


@pytest.mark.parametrize("name", ["verdict", "annotation"])
def test_a_timeout_ends_it_with_124_and_the_message_for_people(held: BarrierProcess, name: str) -> None:
    said = "timed out after 300s: 299/300 pods started\nmissing: workers-2/17 (ImagePull)\n"
    held.write(name, timeout(said))
    process = held.start()
    assert process.communicate(timeout=PATIENCE)[0] == f"waiting for the gang to start\n{said}"
    assert process.returncode == names.EXIT_TIMED_OUT == 124
    assert held.log.read_text() == said.rstrip()


def test_the_termination_message_is_at_most_one_kib(held: BarrierProcess) -> None:
    held.write("verdict", timeout("x" * 5000))
    assert held.run() == 124
    assert held.log.read_text() == "x" * 1024


def test_a_timeout_ends_it_with_124_even_where_the_termination_log_cannot_be_written(held: BarrierProcess) -> None:
    held.log.mkdir()
    held.write("verdict", timeout())
    assert held.run() == 124


def test_a_verdict_of_its_generation_is_obeyed_and_one_of_a_later_epoch(held: BarrierProcess) -> None:
    held.attempt, held.epoch = "3", "10"
    assert held.obeys(release(attempt=3, epoch=10))
    assert held.obeys(f"release {UID} 3 11 AllPodsStarted"), "without a line end, too"
    assert not held.obeys(release(attempt=3, epoch=9))


WORTHLESS = (
    "started",
    release(uid="another-life"),
    release(uid="*"),
    release(attempt=1),
    release(attempt=""),
    release(epoch=-1),
    release(epoch="1x"),
    release(epoch="one"),
    release(epoch=""),
    f"release {UID} 0",
    "",
    "\n" + release(),
    "\x00\x01\xff",
)


def test_anything_but_a_verdict_of_its_generation_is_ignored(held: BarrierProcess) -> None:
    assert [text for text in WORTHLESS if held.obeys(text)] == []


def test_a_folder_in_place_of_the_file_is_ignored(held: BarrierProcess) -> None:
    (held.folder / "verdict").mkdir()
    held.write("annotation", release())
    assert held.run() == 0


@pytest.mark.parametrize("text", ["release  0 0 AllPodsStarted", "release  0 0 0 AllPodsStarted", release(uid='""')])
def test_an_empty_uid_never_matches(held: BarrierProcess, text: str) -> None:
    held.uid, held.limit = "", "0"
    held.write("verdict", text)
    held.write("annotation", text)
    assert held.run() == 124
    assert "no verdict" in held.log.read_text()


@pytest.mark.parametrize("epoch", ["", "garbage", "-3"])
def test_an_own_epoch_that_is_none_counts_as_zero(held: BarrierProcess, epoch: str) -> None:
    held.epoch = epoch
    assert held.obeys(release(epoch=0))


@pytest.mark.parametrize("name", ["verdict", "annotation"])
def test_a_release_is_kept_and_the_barrier_that_runs_again_passes_without_anybody(
    held: BarrierProcess, name: str
) -> None:
    held.state.mkdir()
    held.write(name, release(epoch=7))
    assert held.run() == 0
    (held.folder / name).unlink()
    assert (held.state / "verdict").read_text() == f"release {UID} 0 7 AllPodsStarted\n"
    for _ in range(2):
        assert held.run() == 0
    held.write("annotation", timeout())
    assert held.run() == 0, "the kept release is read first"


def test_a_timeout_is_not_kept(held: BarrierProcess) -> None:
    held.state.mkdir()
    held.write("verdict", timeout())
    assert held.run() == 124
    assert list(held.state.iterdir()) == []
    held.write("verdict", release())
    assert held.run() == 0


def test_a_kept_release_of_another_pod_is_ignored(held: BarrierProcess) -> None:
    held.state.mkdir()
    (held.state / "verdict").write_text(release(uid="another-pod"))
    held.write("annotation", timeout())
    assert held.run() == 124


def test_a_release_that_cannot_be_kept_is_obeyed_in_silence(held: BarrierProcess) -> None:
    held.state.mkdir()
    (held.state / "verdict").symlink_to("/dev/full")
    held.write("annotation", release())
    process = held.start()
    assert process.communicate(timeout=PATIENCE) == ("waiting for the gang to start\nreleased\n", "")
    assert process.returncode == 0


def test_at_its_own_limit_it_ends_with_124_and_says_that_the_controller_gave_no_verdict(held: BarrierProcess) -> None:
    held.limit = "0"
    held.write("verdict", release())
    assert held.run() == 0, "a verdict comes first"
    (held.folder / "verdict").unlink()
    held.limit = "1"
    began = time.monotonic()
    assert held.run() == 124
    assert time.monotonic() - began >= 1
    assert held.log.read_text() == "timed out: no verdict from the jobset-gate controller within 1s"


@pytest.mark.parametrize("limit", ["", "garbage", "-1"])
def test_without_a_limit_it_waits_until_a_signal(held: BarrierProcess, limit: str) -> None:
    """Which ends it at once and not after the poll."""
    held.limit, held.poll = limit, "3600"
    process = held.waiting()
    barrier_process.until_napping(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143


@pytest.mark.parametrize(("command", "most"), [(container.command, 3200), (prefetch.copy_command, 1536)])
def test_it_is_small_enough_for_every_pod_and_kubernetes_expands_nothing_in_it(
    command: Callable[[], list[str]], most: int
) -> None:
    """`$(NAME)` and `$$` in a container's command mean something to the kubelet."""
    script = command()[-1]
    assert len(script.encode()) < most
    assert "#" not in script
    assert "$(J" not in script
    assert "$$" not in script


def test_the_script_looks_where_the_container_mounts() -> None:
    script = container.shell_script("barrier.sh")
    assert f"JOBSET_GATE_DIR:-{names.MOUNT_PATH}}}" in script
    assert f"JOBSET_GATE_STATE:-{names.STATE_PATH}}}/{names.VERDICT_FILE}\n" in script
    assert f'for file in "$state" "$dir/{names.VERDICT_FILE}" "$dir/{names.ANNOTATION_FILE}";' in script


numbers = st.integers(min_value=0, max_value=30)


@pytest.fixture
def in_dash(tmp_path: Path) -> Iterator[Callable[[], BarrierProcess]]:
    with barrier_process.barrier_process("dash", tmp_path) as made:
        yield lambda: made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    verdict=st.tuples(st.sampled_from([UID, "other"]), st.integers(0, 2), numbers),
    own=st.tuples(st.just(UID), st.integers(0, 2), numbers),
)
def test_the_script_obeys_exactly_the_generations_that_the_rules_say(
    in_dash: Callable[[], BarrierProcess], verdict: tuple[str, int, int], own: tuple[str, int, int]
) -> None:
    """The shell and `Generation.covers` are two implementations of A5."""
    held = in_dash()
    held.uid, held.attempt, held.epoch = own[0], str(own[1]), str(own[2])
    message = Verdict(kind=VerdictKind.RELEASE, generation=Generation(*verdict), cause="AllPodsStarted")
    assert held.obeys(render(message)) == Generation(*verdict).covers(Generation(*own))
