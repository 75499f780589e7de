"""The init containers that bring the main images onto the node before the barrier, and their volume (A8).

The kubelet pulls an image when a container of it is to run, and main containers run last. So each main image first
runs a program that does nothing; `group-scheduling-prefetch` puts it into a volume that they all mount, since an image
need not hold any program that exits.
"""

import re
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from jobset_gate import names
from jobset_gate.injection.container import TOKEN_PATH, shell_script
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView, annotations_of
from jobset_gate.objects.unstructured import Json, as_list, nested

NO_DEVICES: Final = ({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},)
"""Or NVIDIA's container runtime would wait for its driver in images that ask for all devices."""
_RUNNER: Final = re.compile(re.escape(names.PREFETCH_CONTAINER) + "-[0-9]+")


def is_requested(obj: Json) -> bool:
    """Whether the JobSet's pods are to have their images before they count as started."""
    return annotations_of(obj).get(names.PREFETCH_IMAGES) == "true"


def build_containers(job: TemplateView, barrier: Json) -> list[Json]:
    """What goes before this barrier into one replicatedJob's pods; nothing if all images are there anyway."""
    pulls = [
        _container(f"{names.PREFETCH_CONTAINER}-{number}", image, noop_command(), barrier)
        | ({} if policy is None else {"imagePullPolicy": policy})
        | {"env": [dict(it) for it in NO_DEVICES]}
        for number, (image, policy) in enumerate(_images(job), start=1)
    ]
    copies = _container(names.PREFETCH_CONTAINER, barrier["image"], copy_command(), barrier, writes=True)
    return [copies, *pulls] if pulls else []


def build_volume() -> Json:
    """The volume with the program."""
    return {"name": names.PREFETCH_VOLUME, "emptyDir": {}}


def copy_command() -> list[str]:
    """The command of the first container, which the validating webhook verifies."""
    return ["sh", "-c", script()]


def noop_command() -> list[str]:
    """What the containers of the main images run; the same on every kind of machine."""
    return [names.PREFETCH_PROGRAM]


@cache
def script() -> str:
    """The programs and prefetch.sh, without its comments and indentation."""
    return "\n".join([*_programs(), shell_script("prefetch.sh")])


def is_reserved(name: Any) -> bool:
    """Whether the name is reserved for prefetch containers."""
    return isinstance(name, str) and (name == names.PREFETCH_CONTAINER or _RUNNER.fullmatch(name) is not None)


def is_container(entry: Any) -> bool:
    """Whether an init container is one that some version of jobset-gate has rendered: its volume at its path."""
    mounts = as_list(nested(entry, "volumeMounts"))
    return is_reserved(nested(entry, "name")) and any(
        nested(it, "name") == names.PREFETCH_VOLUME and nested(it, "mountPath") == names.PREFETCH_PATH for it in mounts
    )


def is_volume(entry: Any) -> bool:
    """Whether a volume is one that some version of jobset-gate has rendered."""
    others = set(entry) - {"name", "emptyDir"} if isinstance(entry, dict) else set()
    return nested(entry, "name") == names.PREFETCH_VOLUME and not others


def is_foreign_volume(job: TemplateView) -> Callable[[Any], bool]:
    """A predicate for volumes with our name that are the user's: no injected container uses them, and they differ from
    the injected form or a container of the user mounts them.
    """
    if any(map(is_container, job.spec_list("initContainers"))):
        return lambda _: False
    theirs = [*user_init_containers(job), *job.spec_list("containers")]
    used = any(
        nested(it, "name") == names.PREFETCH_VOLUME for one in theirs for it in as_list(nested(one, "volumeMounts"))
    )
    return lambda entry: (
        nested(entry, "name") == names.PREFETCH_VOLUME and (used or not semantically_equal(entry, build_volume()))
    )


def user_init_containers(job: TemplateView) -> list[Json]:
    """The user's own init containers."""
    return [
        it
        for it in job.spec_list("initContainers")
        if isinstance(it, dict) and not is_reserved(it.get("name")) and it.get("name") != names.BARRIER_CONTAINER
    ]


def images_not_pulled(job: TemplateView, before: list[Any]) -> list[str]:
    """Main images that none of these containers runs, whatever its pull policy."""
    there = {image for image, _ in _pairs(before)}
    return sorted({image for image, _ in _pairs(job.spec_list("containers"))} - there)


def _images(job: TemplateView) -> Iterator[tuple[str, Any]]:
    """Each image and pull policy of the main containers once, unless an init container of the user's runs it."""
    seen = {(image, str(policy)) for image, policy in _pairs(user_init_containers(job))}
    for image, policy in _pairs(job.spec_list("containers")):
        if (image, str(policy)) not in seen:
            seen.add((image, str(policy)))
            yield image, policy


def _pairs(entries: list[Any]) -> Iterator[tuple[str, Any]]:
    for entry in entries:
        image = nested(entry, "image")
        if isinstance(image, str) and image:
            yield image, nested(entry, "imagePullPolicy")


def _container(name: str, image: str, command: list[str], barrier: Json, *, writes: bool = False) -> Json:
    """As safe as the barrier, and with its resources."""
    mount: Json = {"name": names.PREFETCH_VOLUME, "mountPath": names.PREFETCH_PATH}
    return {
        "name": name,
        "image": image,
        "command": command,
        "volumeMounts": [
            mount if writes else mount | {"readOnly": True},
            # Something mounted there keeps the API server from mounting the pod's token into this container.
            {"name": names.PREFETCH_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **{key: barrier[key] for key in ("securityContext", "resources") if key in barrier},
    }


def _programs() -> Iterator[str]:
    """A shell function for each machine, and the one in which they are alike."""
    (alike,) = {_without_number(noop_program(machine)) for machine in MACHINES.values()}
    before, after = (escaped(part) for part in alike)
    yield f'elf() {{ printf "{before}$1{after}$2"; }}'
    for name, machine in MACHINES.items():
        number, code = escaped(bytes([machine.number])), escaped(machine.code)
        yield f"{name}() {{ elf '{number}' '{code}'; }}"


def _without_number(program: bytes) -> tuple[bytes, bytes]:
    return program[:MACHINE_AT], program[MACHINE_AT + 1 : CODE_AT]


# --- The program ------------------------------------------------------------------------------------------------------


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


def noop_program(machine: ElfMachine) -> bytes:
    """The smallest program that Linux runs: an ELF file of 188 bytes whose only act is exit_group(0).

    Made from the fields of the ELF specification (64-bit, little-endian), so there is no binary in the repository. It
    needs no loader, no library and nothing of the image that it runs in.
    """
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
