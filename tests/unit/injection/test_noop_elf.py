"""The program that does nothing: what the ELF specification says of each field, and that it runs."""

import struct

import pytest

from jobset_gate.injection import noop_elf
from jobset_gate.injection.noop_elf import MACHINES

NUMBERS = {"x86_64": 62, "aarch64": 183}
"""EM_X86_64 and EM_AARCH64 of the ELF specification."""
LOAD, STACK = 1, 0x6474E551
READ_EXECUTE, READ_WRITE = 5, 6


def segments(program: bytes) -> list[tuple[int, ...]]:
    """(type, flags, offset, address, physical address, size in the file, size in memory, alignment) of each."""
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return [struct.unpack_from("<IIQQQQQQ", program, start + number * size) for number in range(count)]


@pytest.mark.parametrize("name", MACHINES)
def test_the_header_is_that_of_a_64_bit_little_endian_linux_program(name: str) -> None:
    program = noop_elf.program(MACHINES[name])
    assert program[:7] == b"\x7fELF\x02\x01\x01"
    kind, machine, version = struct.unpack_from("<HHI", program, 16)
    assert (kind, machine, version) == (2, NUMBERS[name], 1)
    assert struct.unpack_from("<H", program, 52) == (64,)
    assert struct.unpack_from("<HHH", program, 58) == (0, 0, 0)


@pytest.mark.parametrize("name", MACHINES)
def test_the_whole_file_is_loaded_and_the_entry_is_its_code(name: str) -> None:
    program = noop_elf.program(MACHINES[name])
    (entry,) = struct.unpack_from("<Q", program, 24)
    kind, flags, offset, address, _, stored, used, alignment = segments(program)[0]
    assert (kind, flags, offset, stored, used) == (LOAD, READ_EXECUTE, 0, len(program), len(program))
    assert program[entry - address :] == MACHINES[name].code
    assert address % alignment == 0
    assert alignment == 65536
    assert [it[1] for it in segments(program) if it[0] == STACK] == [READ_WRITE], "no executable stack"
    assert len(program) < 200


def test_the_instructions_on_aarch64_are_exit_group_of_zero() -> None:
    """MOVZ Xd, #imm16 is 0xd2800000 | imm16 << 5 | d; the call's number goes into x8; SVC #0 is 0xd4000001."""
    words = struct.unpack("<3I", MACHINES["aarch64"].code)
    assert words == (0xD2800000, 0xD2800000 | 94 << 5 | 8, 0xD4000001)
