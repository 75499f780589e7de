"""The smallest program that Linux runs: an ELF file of 188 bytes whose only act is exit_group(0) (A8).

Made from the fields of the ELF specification (64-bit, little-endian), so there is no binary in the repository. It needs
no loader, no library and nothing of the image that it runs in.
"""

import struct
from typing import Final, NamedTuple


class ElfMachine(NamedTuple):
    """A processor: what ELF calls it (e_machine), and its instructions for exit_group(0)."""

    number: int
    code: bytes


MACHINES: Final = {
    # mov edi, 0; mov eax, 231; syscall
    "x86_64": ElfMachine(62, bytes.fromhex("bf00000000 b8e7000000 0f05")),
    # mov x0, #0; mov x8, #94; svc #0
    "aarch64": ElfMachine(183, bytes.fromhex("000080d2 c80b80d2 010000d4")),
}
"""By the name that `uname -m` gives it. All codes are equally long, so only these two things differ between files."""

MACHINE_AT: Final = 18
"""Where in the file e_machine stands; both numbers fit its first byte."""
CODE_AT: Final = 64 + 2 * 56
"""Behind the file's header and two program headers."""

_BASE: Final = 0x400000
_PAGE: Final = 0x10000
"""The largest page that an aarch64 kernel may have: an address that is aligned to it is aligned to all."""
_EXECUTABLE, _CURRENT = 2, 1
_LOAD, _STACK = 1, 0x6474E551
_EXECUTE, _WRITE, _READ = 1, 2, 4


def program(machine: ElfMachine) -> bytes:
    """The file."""
    size = CODE_AT + len(machine.code)
    ident = b"\x7fELF" + bytes([2, 1, _CURRENT]).ljust(12, b"\0")
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(ident, _EXECUTABLE, machine.number, _CURRENT, _BASE + CODE_AT),
        *(64, 0, 0),  # the program headers follow at once; no sections, no flags
        *(64, 56, 2, 0, 0, 0),
    )
    whole = struct.pack("<IIQQQQQQ", _LOAD, _READ | _EXECUTE, 0, _BASE, _BASE, size, size, _PAGE)
    # Without this one older kernels make the stack executable, which SELinux may refuse.
    stack = struct.pack("<IIQQQQQQ", _STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16)
    return header + whole + stack + machine.code


def escaped(data: bytes) -> str:
    """Bytes as every `printf` takes them in its format: octal, and short, since the next byte is escaped too."""
    return "".join(f"\\{byte:o}" for byte in data)
