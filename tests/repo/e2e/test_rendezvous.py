"""The program that examples run in the suite: it ends well only when every peer was there."""

import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from e2e.example_overlays import PROGRAM
from e2e.rendezvous import MISSED

HURRY = "1"


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def started(*words: str, patience: str = "30") -> "subprocess.Popen[str]":
    """As a container runs it."""
    command = [sys.executable, "-c", PROGRAM.read_text(), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PATIENCE": patience})  # noqa: S603


def ended(*commands: tuple[str, ...], patience: str = "30") -> list[tuple[int, str]]:
    """(exit code, last line) of each, all run at once."""
    with ExitStack() as stack:
        running = [stack.enter_context(started(*command, patience=patience)) for command in commands]
        said = [one.communicate(timeout=60)[0] for one in running]
        return [(one.returncode, lines.splitlines()[-1]) for one, lines in zip(running, said, strict=True)]


def test_all_ranks_meet() -> None:
    port = free_port()
    ranks = [("meet", "127.0.0.1", port, str(rank), "3") for rank in (2, 1, 0)]
    assert ended(*ranks) == [(0, f"rank {rank} of 3: all are here") for rank in (2, 1, 0)]


def test_a_missing_rank_is_named_and_fails_all() -> None:
    port = free_port()
    ranks = [("meet", "127.0.0.1", port, str(rank), "3") for rank in (0, 1)]
    (zero, said), (one, _) = ended(*ranks, patience=HURRY)
    assert (zero, one) == (MISSED, MISSED)
    assert said.startswith("missing after 1s: ")
    assert said.endswith("2")


def test_nobody_meets_without_rank_zero() -> None:
    ((code, said),) = ended(("meet", "127.0.0.1", free_port(), "1", "2"), patience=HURRY)
    assert code == MISSED
    assert "is missing after 1s" in said


def test_a_rank_that_comes_twice_is_one() -> None:
    port = free_port()
    ranks = [("meet", "127.0.0.1", port, rank, "3") for rank in ("0", "1", "1")]
    assert [code for code, _ in ended(*ranks, patience=HURRY)] == [MISSED] * 3


def test_a_host_waits_for_all_to_be_there_at_once() -> None:
    port = free_port()
    with started("host", port, "2") as host:
        ((early, _),) = ended(("join", "127.0.0.1", port), patience=HURRY)
        both = ended(("join", "127.0.0.1", port), ("join", "127.0.0.1", port))
        said = host.communicate(timeout=60)[0]
    assert early == MISSED
    assert [code for code, _ in both] == [0, 0]
    assert "all 2 were here at once" in said


def test_a_launcher_reaches_every_worker(tmp_path: Path) -> None:
    hosts, port = tmp_path / "hosts", free_port()
    hosts.write_text("127.0.0.1 slots=1\nlocalhost slots=1\n")
    with started("answer", port) as worker:
        reached = ended(("call", str(hosts), port))
        worker.terminate()
        assert worker.wait(timeout=60) == 0
    assert reached == [(0, "all 2 workers have answered")]
    assert ended(("call", str(hosts), port), patience=HURRY)[0][0] == MISSED


def test_it_is_one_file_of_the_standard_library() -> None:
    text = PROGRAM.read_text()
    imported = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    assert len(imported) > 4
    assert set(imported) <= sys.stdlib_module_names
    assert "$" not in text  # which a kubelet could take for a variable
