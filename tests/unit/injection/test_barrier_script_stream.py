"""barrier.sh on the gate stream: what it requests, the verdicts it obeys there, and that no answer can harm it (A6)."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes import barrier_process
from tests.fakes.barrier_process import POD, SHELLS, UID, BarrierProcess, release, timeout
from tests.fakes.eventually import PATIENCE
from tests.fakes.stream_server import GANG, StreamServer

MIB = 1024 * 1024
SLEEP = shutil.which("sleep")


@pytest.fixture
def gate() -> Iterator[StreamServer]:
    with StreamServer() as made:
        yield made


@pytest.fixture(params=SHELLS)
def held(request: pytest.FixtureRequest, tmp_path: Path, gate: StreamServer) -> Iterator[BarrierProcess]:
    """A barrier that looks at its files once an hour: whatever happens sooner is the stream's doing."""
    with barrier_process.barrier_process(request.param, tmp_path) as made:
        made.stream, made.poll = gate.url, "3600"
        made.replace_tool("sleep", f'[ "$1" != {made.poll} ] || exec {SLEEP} "$1"')
        yield made


def ended(process: subprocess.Popen[str]) -> int:
    """The exit code, once nothing is left of it: no client that holds a request open for nobody."""
    code = process.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while alive(process.pid):
        assert time.monotonic() < deadline, alive(process.pid)
    return code


def processes(group: int) -> list[str]:
    """Names of the processes of a group without zombies, which no parent has waited for yet."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, rest = stat.read_text().rsplit(")", 1)
            state, _, its_group, *_ = rest.split()
            if its_group == str(group) and state not in "ZX":
                found.append(name.partition("(")[2])
    return found


def alive(group: int) -> list[str]:
    """Without naps. One is a process under dash, and deaf in its first moment; in a pod it ends with process 1."""
    return [name for name in processes(group) if name != "sleep"]


def test_it_asks_for_its_own_generation_and_says_which_pod_it_is(held: BarrierProcess, gate: StreamServer) -> None:
    held.attempt, held.epoch = "2", "7"
    held.start()
    assert gate.next_request().path == f"{GANG}/{UID}/2/7/{POD}"


@pytest.mark.parametrize(
    ("body", "code"), [(release(), 0), (timeout("nobody came\n"), 124)], ids=["release", "timeout"]
)
def test_it_does_not_wait_for_the_end_of_the_answer_and_keeps_a_release(
    held: BarrierProcess, gate: StreamServer, body: str, code: int
) -> None:
    held.state.mkdir()
    process = held.start()
    worthless = gate.next_request()
    worthless.hold(body="garbage\n")
    worthless.until_gone()
    asked = gate.next_request()
    asked.hold(body=body)
    assert ended(process) == code
    asked.until_gone()
    assert code == 0 or held.log.read_text() == "nobody came"
    kept = [it.read_text() for it in held.state.iterdir()]
    assert kept == ([release().partition("\n")[0] + "\n"] if code == 0 else [])


def test_a_verdict_may_come_in_pieces_and_in_chunks(held: BarrierProcess, gate: StreamServer) -> None:
    held.epoch = "12"
    process = held.start()
    asked = gate.next_request()
    asked.hold()
    for letter in "\n\n" + release(epoch=123).partition("\n")[0] + "\n":
        asked.send(letter)
    assert ended(process) == 0
    process = held.start()
    asked = gate.next_request()
    asked.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\n\n\r\n")
    text = release(epoch=12)
    asked.send(f"{len(text):x}\r\n{text}\r\n0\r\n\r\n")
    assert ended(process) == 0


WORTHLESS = (
    "",
    "\n\n\n",
    "garbage\n",
    "* * * *\n",
    timeout().replace(UID, "another-life"),
    timeout().replace(" 0 0 ", " 1 5 "),
    timeout().replace(" 0 0 ", " 0 4 "),
    "release\n" + timeout(),
    f"timeout {UID} 0 5",
    f"timeout {UID} 0 5x Because\n",
    f"timeout {UID} 0 99999999999999999999 Because\n",
)
REFUSALS = ("400 Bad", "403 No", "404 No", "429 Slow", "500 Oh", "503 Bye")
VALID = timeout().replace(" 0 0 ", " 0 5 ")
ANSWERS = {
    "refusals, whatever they say": [f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{VALID}" for status in REFUSALS],
    "no verdict of its generation": [f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}" for body in WORTHLESS],
    "no HTTP": ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nrel", "SSH-2.0-x\r\n"],
}


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_what_is_no_verdict_is_ignored_and_it_asks_again(
    held: BarrierProcess, gate: StreamServer, answers: list[str]
) -> None:
    held.epoch = "5"
    process = held.start()
    for text in answers:
        asked = gate.next_request()
        asked.send(text)
        asked.close()
    gate.next_request().answer(release(epoch=5))
    assert ended(process) == 0
    assert process.communicate()[1] == ""


def test_a_silent_server_is_left_and_asked_again(held: BarrierProcess, gate: StreamServer) -> None:
    held.script = held.script.replace("-T 40", "-T 1").replace("-t 40", "-t 1")
    process = held.start()
    asked = gate.next_request()
    asked.hold(body="\n")
    asked.until_gone()
    while process.poll() is None:
        # On a busy machine a second may pass before a request is answered, and the barrier makes another one; or it
        # makes none, since it has the answer and ends.
        with suppress(AssertionError, TimeoutError):
            gate.next_request(within=1).answer(release())
    assert ended(process) == 0


@pytest.mark.parametrize("chunk", ["x" * 65536, "\n" * 65536, "release " * 8192])
def test_of_an_endless_answer_it_takes_little(held: BarrierProcess, gate: StreamServer, chunk: str) -> None:
    """What fits into the buffers of two sockets and two pipes is gone before anyone can stop."""
    process = held.start()
    asked = gate.next_request()
    asked.hold()
    assert asked.flood(chunk, 64 * MIB) < 64 * MIB
    gate.next_request().answer(release())
    assert ended(process) == 0


def test_a_stream_of_empty_lines_keeps_no_crowd_of_processes(held: BarrierProcess, gate: StreamServer) -> None:
    """A shell that naps by a process of its own starts no other one while the first sleeps."""
    process = held.start()
    asked = gate.next_request()
    asked.hold()
    most = 0
    for _ in range(300):
        asked.send("\n")
        time.sleep(0.002)
        most = max(most, processes(process.pid).count("sleep"))
    assert most <= 2
    asked.send(release())
    assert ended(process) == 0


@pytest.mark.parametrize("begun", [True, False])
def test_the_files_release_it_while_the_stream_is_held(held: BarrierProcess, gate: StreamServer, begun: bool) -> None:
    held.poll = "0.01"
    process = held.start()
    asked = gate.next_request()
    if begun:
        asked.hold(body="\n")
    held.write("verdict", release())
    assert ended(process) == 0
    asked.until_gone()


def test_its_own_limit_holds_while_the_stream_is_held(held: BarrierProcess, gate: StreamServer) -> None:
    held.limit, held.poll = "3", "0.01"
    process = held.start()
    gate.next_request().hold(body="\n")
    assert ended(process) == 124
    assert held.log.read_text() == "timed out: no verdict from the jobset-gate controller within 3s"


@pytest.mark.parametrize(("reason", "begun"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_signal_ends_it_and_its_client_at_once(
    held: BarrierProcess, gate: StreamServer, reason: signal.Signals, begun: bool
) -> None:
    process = held.start()
    asked = gate.next_request()
    if begun:
        asked.hold(body="\n")
    barrier_process.until_napping(process)
    process.send_signal(reason)
    assert ended(process) == 143
    asked.until_gone()


def test_without_a_url_it_asks_nobody(held: BarrierProcess) -> None:
    held.stream, held.poll = "", "0.01"
    held.replace_tool("wget", f"echo asked >{held.folder}/asked")
    process = held.waiting()
    held.write("verdict", release())
    assert ended(process) == 0
    assert not (held.folder / "asked").exists()


def test_without_a_wget_it_says_so_once_and_goes_by_the_files(held: BarrierProcess) -> None:
    held.poll = "0.01"
    held.script = held.script.replace("command -v wget", "command -v no-such-wget")
    process = held.waiting()
    assert process.stdout is not None
    assert process.stdout.readline() == "no wget in this image: no gate stream\n"
    held.write("verdict", release())
    assert ended(process) == 0
    assert process.communicate() == ("released\n", "")


def pauses(held: BarrierProcess, gate: StreamServer, times: int) -> list[float]:
    """How long it waits before it asks, when each time it is sent away at once."""
    log = held.folder / "pauses"
    held.replace_tool("sleep", f'[ "$1" != {held.poll} ] || exec {SLEEP} "$1"\necho "$1" >>{log}')
    process = held.start()
    for _ in range(times - 1):
        gate.next_request().close()
    gate.next_request().answer(release())
    assert ended(process) == 0
    return [float(line) for line in log.read_text().split()]


def test_it_asks_at_once_then_soon_and_then_ever_later_up_to_ten_seconds(
    held: BarrierProcess, gate: StreamServer
) -> None:
    first, *waited = pauses(held, gate, 16)
    assert first == 0
    assert all(0.1 <= pause <= limit for pause, limit in zip(waited, (1, 2, 4, 8, *[10] * 12), strict=False))
    assert max(waited) > 4
    assert len(set(waited[-10:])) > 5, "ever the same part of what it may wait"


def test_no_two_pods_ask_in_step(held: BarrierProcess, gate: StreamServer) -> None:
    one = pauses(held, gate, 6)
    (held.folder / "pauses").unlink()
    held.pod = "c0ffee00-1d7c-4d0e-8a53-52e5a6f0c1aa"
    assert pauses(held, gate, 6) != one


def test_a_stream_that_was_held_for_long_is_requested_again_soon(held: BarrierProcess, gate: StreamServer) -> None:
    held.script = held.script.replace("-lt 30", "-lt 0")
    assert max(pauses(held, gate, 12)) <= 1


def test_a_stream_that_ends_without_a_close_is_requested_again(held: BarrierProcess, gate: StreamServer) -> None:
    """Its last word may be lost, as here where all that listens is killed: the shell looks for itself now and then.

    Not under dash, where the word is a signal, which is not lost.
    """
    if held.shell == "dash":
        return
    held.poll = "0.01"
    process = held.start()
    gate.next_request().hold(body="\n")
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        with suppress(ProcessLookupError):  # one that was about to end anyway
            os.kill(int(child), signal.SIGKILL)
    gate.next_request().hold(body=release())
    assert ended(process) == 0
