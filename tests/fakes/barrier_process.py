"""barrier.sh in each of the shells that it has to run in, with the files that it looks at."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jobset_gate import names
from jobset_gate.injection import container
from tests.fakes.eventually import PATIENCE
from tests.tools.catalog import BUSYBOXES

UID = "6f1e2c1a-6a0f-4d53-9c55-0d7f1c1e0b11"
POD = "0b7d3c55-1d7c-4d0e-8a53-52e5a6f0c1aa"

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash"],
    "posix": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
    "busybox-static": ["busybox", "sh"],
}
"""Both kinds of busybox are called by the name of Debian's package; the static one never looks at the PATH."""
TOOLS = ("dd", "head", "sleep", "wget")
"""What the script runs. Under busybox they are busybox's own, as in the image that barriers run in."""


@cache
def program(shell: str) -> Path:
    """The shell itself. ToolNotFound, or AssertionError, where it is not installed."""
    if shell in BUSYBOXES:
        return BUSYBOXES[shell].find()
    found = shutil.which(SHELLS[shell][0])
    assert found, f"{shell} is not installed"
    return Path(found)


def tool(shell: str, name: str) -> Path:
    """What that shell's image has for a program of this name."""
    if shell in BUSYBOXES:
        return program(shell)
    found = shutil.which(name)
    assert found, f"{name} is not installed"
    return Path(found)


@dataclass
class BarrierProcess:
    """A barrier: the files that it reads and the generation that it belongs to."""

    shell: str
    folder: Path
    uid: str = UID
    attempt: str = "0"
    epoch: str = "0"
    limit: str = ""
    poll: str = "0.01"
    stream: str = ""
    pod: str = POD
    script: str = field(default_factory=lambda: container.shell_script("barrier.sh"))
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.program = program(self.shell)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        for name in TOOLS:
            (self.tools / name).symlink_to(tool(self.shell, name))

    @property
    def log(self) -> Path:
        return self.folder / "termination-log"

    @property
    def state(self) -> Path:
        """The mounted state volume; missing unless a test makes it."""
        return self.folder / "state"

    def write(self, name: str, text: str) -> None:
        """The whole file at once, as a kubelet does it."""
        (self.folder / "half").write_text(text)
        (self.folder / "half").rename(self.folder / name)

    def replace_tool(self, name: str, script: str) -> None:
        """Another program in the place of one that the script runs: by its path, for not every shell asks the PATH."""
        path = self.tools / name
        if f"{path} " not in self.script:
            assert f"{name} " in self.script
            self.script = self.script.replace(f"{name} ", f"{path} ")
        path.unlink()
        path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        environment = {
            "PATH": str(self.tools),
            "JOBSET_GATE_DIR": str(self.folder),
            "JOBSET_GATE_STATE": str(self.state),
            "JOBSET_GATE_TERMINATION_LOG": str(self.log),
            names.ENV_UID: self.uid,
            names.ENV_ATTEMPT: self.attempt,
            names.ENV_EPOCH: self.epoch,
            names.ENV_LIMIT: self.limit,
            container.ENV_POLL: self.poll,
        }
        if self.stream:
            environment |= {names.ENV_STREAM: self.stream, names.ENV_POD: self.pod}
        process = subprocess.Popen(  # noqa: S603 - it is our own script
            [*SHELLS[self.shell], "-c", self.script],
            executable=self.program,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self) -> int:
        return self.start().wait(PATIENCE)

    def waiting(self) -> subprocess.Popen[str]:
        process = self.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting for the gang to start\n"
        return process

    def obeys(self, text: str) -> bool:
        """Whether a release of that text opens the gate. The annotation is looked at second, and always ends it."""
        self.write("verdict", text)
        self.write("annotation", f"timeout {self.uid} {self.attempt} 999999 TimedOut\nnot obeyed\n")
        process = self.start()
        assert process.communicate(timeout=PATIENCE)[1] == "", "whatever stands there, it complains of nothing"
        return process.returncode == 0


def until_napping(process: subprocess.Popen[str]) -> None:
    """Until the shell sleeps in the kernel.

    bash runs a trap at the next end of its `read` where the signal comes just before that begins: after one poll.
    """
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < end, "the barrier does not nap"
        os.sched_yield()


@contextlib.contextmanager
def barrier_process(shell: str, folder: Path) -> Iterator[BarrierProcess]:
    """A barrier in one of the shells; whatever it has left running goes at the end."""
    made = BarrierProcess(shell, folder)
    try:
        yield made
    finally:
        for process in made.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with process:
                process.wait(PATIENCE)


def release(uid: str = UID, attempt: int | str = 0, epoch: int | str = 0) -> str:
    return f"release {uid} {attempt} {epoch} AllPodsStarted\nall 300 pods started\n"


def timeout(message: str = "timed out after 300s: 299/300 pods started\n") -> str:
    return f"timeout {UID} 0 0 TimedOut\n{message}"
