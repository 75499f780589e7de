"""prefetch.sh under the shells that it has to run in: what lies in the volume afterwards, and what it says if not."""

import os
import platform
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobset_gate.injection import prefetch
from tests.fakes import barrier_process
from tests.fakes.barrier_process import SHELLS
from tests.fakes.eventually import PATIENCE

TOOLS = ("rm", "chmod", "mv", "head", "tr", "grep", "cat")
WITH_LOADER = b"\x7fELF\x02\x01\x01" + bytes(700) + b"/lib64/ld-linux-x86-64.so.2\0GNU\0" + bytes(5000)
MACHINES = {
    # mov edi, 0; mov eax, 231; syscall
    "x86_64": (62, bytes.fromhex("bf00000000 b8e7000000 0f05")),
    # MOVZ Xd, #imm16 is 0xd2800000 | imm16 << 5 | d; the call's number goes into x8; SVC #0 is 0xd4000001.
    "aarch64": (183, struct.pack("<3I", 0xD2800000, 0xD2800000 | 94 << 5 | 8, 0xD4000001)),
}
"""EM_X86_64 and EM_AARCH64 of the ELF specification, and the instructions of exit_group(0)."""
machines = pytest.mark.parametrize("name", MACHINES)
STATIC = b"\x7fELF\x02\x01\x01" + bytes(700) + b"GNU\0" + bytes(5000) + b"/etc/ld.so.cache"


@dataclass
class Image:
    """The barrier's image: a shell, the few tools that are needed, and a `uname` that tells of any machine.

    That and a program called busybox are run by their paths, for not every shell asks the PATH.
    """

    shell: list[str]
    bin: Path
    volume: Path

    def machine(self, name: str) -> None:
        self._tool("uname", f'#!/bin/sh\n[ "$*" = -m ] && echo {name}\n'.encode())

    def busybox(self, content: bytes) -> None:
        self._tool("busybox", content)

    def run(self, lookup: str = "") -> subprocess.CompletedProcess[str]:
        """`lookup`: what is looked up instead of the program named busybox that a test has put there."""
        *words, script = prefetch.copy_command()[1:]
        for word, path in (
            ("`uname ", f"`{self.bin}/uname "),
            ("-v busybox`", f"-v {lookup or self.bin / 'busybox'}`"),
        ):
            assert word in script
            script = script.replace(word, path)
        command = [*self.shell, *words, script]
        environment = {"PATH": str(self.bin), "JOBSET_GATE_DIR": str(self.volume)}
        return subprocess.run(  # noqa: S603 - it is our own script
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    @property
    def program(self) -> Path:
        return self.volume / "true"

    def noop(self, machine: str) -> bytes:
        """The program that does nothing on this machine."""
        self.machine(machine)
        assert self.run().returncode == 0
        return self.program.read_bytes()

    def _tool(self, name: str, content: bytes) -> None:
        (self.bin / name).write_bytes(content)
        (self.bin / name).chmod(0o755)


@pytest.fixture(params=SHELLS)
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Image:
    """Without a program called busybox; those with busybox's shell have its tools too."""
    shell, (_, *arguments) = str(request.param), SHELLS[str(request.param)]
    made = Image([str(barrier_process.program(shell)), *arguments], tmp_path / "bin", tmp_path / "volume")
    made.bin.mkdir()
    made.volume.mkdir()
    for name in TOOLS:
        (made.bin / name).symlink_to(barrier_process.tool(shell, name))
    return made


@machines
def test_the_program_for_the_machine_is_put_into_the_volume_for_any_user_to_run(image: Image, name: str) -> None:
    """Whatever the umask, and again after the node was rebooted; no busybox is looked for."""
    image.machine(name)
    image.busybox(WITH_LOADER)
    before = os.umask(0o077)
    try:
        for _ in range(2):
            ran = image.run()
            assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    finally:
        os.umask(before)
    assert image.program.stat().st_mode & 0o777 == 0o555, "and nobody writes to it"
    assert [it.name for it in image.volume.iterdir()] == ["true"]
    if name == platform.machine():
        assert subprocess.run([image.program], env={}, check=False).returncode == 0  # noqa: S603 - our own program


def test_what_an_earlier_run_left_that_was_cut_short_is_taken_away_and_not_written_into(image: Image) -> None:
    """It may be there already without leave to write. For root there is no such thing, so here it leads elsewhere."""
    image.machine("x86_64")
    (image.volume / "new").symlink_to("elsewhere")
    assert image.run().returncode == 0
    assert [it.name for it in image.volume.iterdir()] == ["true"]
    assert not image.program.is_symlink()


def test_on_other_machines_a_static_busybox_does_as_well(image: Image) -> None:
    image.machine("riscv64")
    image.busybox(STATIC)
    ran = image.run()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert image.program.read_bytes() == STATIC
    assert image.program.stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize(
    ("busybox", "why"),
    [(WITH_LOADER, "the busybox in the barrier's image is not static"), (b"", "no busybox in the barrier's image")],
)
def test_without_a_busybox_that_runs_in_the_main_image_it_says_so(image: Image, busybox: bytes, why: str) -> None:
    image.machine("riscv64")
    if busybox:
        image.busybox(busybox)
    ran = image.run()
    assert (ran.returncode, ran.stderr) == (1, f"prefetch-images: no program for riscv64 machines, and {why}\n")
    assert not image.program.exists()


@pytest.mark.parametrize("image", ["busybox-static"], indirect=True)
def test_a_busybox_that_finds_itself_by_no_path_is_what_is_put_there(image: Image) -> None:
    """Its shell takes `busybox` for one of its own programs, and names no file."""
    image.machine("riscv64")
    ran = image.run(lookup="busybox")
    own = Path(image.shell[0]).read_bytes()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert image.program.read_bytes() == own


def test_a_volume_that_cannot_be_written_to_fails_with_a_message(image: Image) -> None:
    image.machine("x86_64")
    image.volume.rmdir()
    ran = image.run()
    assert ran.returncode != 0
    assert str(image.volume) in ran.stderr


# --- The program that does nothing: what the ELF specification says of each field, and that it runs -------------------

LOAD, STACK = 1, 0x6474E551
READ_EXECUTE, READ_WRITE = 5, 6


def segments(program: bytes) -> list[tuple[int, ...]]:
    """(type, flags, offset, address, physical address, size in the file, size in memory, alignment) of each."""
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return [struct.unpack_from("<IIQQQQQQ", program, start + number * size) for number in range(count)]


@machines
def test_it_is_a_small_64_bit_linux_program_that_is_loaded_whole_and_whose_entry_is_its_code(
    image: Image, name: str
) -> None:
    program = image.noop(name)
    assert program[:7] == b"\x7fELF\x02\x01\x01"
    number, instructions = MACHINES[name]
    assert struct.unpack_from("<HHIQ", program, 16)[:3] == (2, number, 1), "kind, machine, version"
    assert (struct.unpack_from("<H", program, 52), struct.unpack_from("<HHH", program, 58)) == ((64,), (0, 0, 0))
    (entry,) = struct.unpack_from("<Q", program, 24)
    kind, flags, offset, address, _, stored, used, alignment = segments(program)[0]
    assert (kind, flags, offset, stored, used) == (LOAD, READ_EXECUTE, 0, len(program), len(program))
    assert program[entry - address :] == instructions
    assert (address % alignment, alignment) == (0, 65536)
    assert [it[1] for it in segments(program) if it[0] == STACK] == [READ_WRITE], "no executable stack"
    assert len(program) < 200
