"""The files that -f and arguments stand for: files, folders, standard input."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.options import option

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""Of the files that are read of a folder, as kubectl does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """Which manifests a command reads."""

    arguments: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="As -f.", show_default=False)] = None
    filename: Annotated[
        list[str] | None,
        option(
            "-f --filename",
            "FILE",
            "A manifest in YAML or JSON, or a folder of them; - reads standard input. May be repeated.",
        ),
    ] = None
    recursive: Annotated[bool, typer.Option("-R", "--recursive", help="Read the folders in a folder, too.")] = False

    def files(self) -> list[str]:
        """Each file once, in the order given; those of a folder by name; - is standard input.

        Raises CommandError without a file, for a URL, and for a folder that holds no manifest.
        """
        given = [*(self.filename or ()), *(self.arguments or ())]
        if not given:
            raise CommandError("name a manifest: -f FILE, a folder, or - for standard input", ExitCode.USAGE)
        return list(dict.fromkeys(file for each in given for file in _files(each, recursive=self.recursive)))


def _files(given: str, *, recursive: bool) -> Iterator[str]:
    if "://" in given:
        hint = f"pipe it in: curl -fsSL {given} | jobset-gate ... -f -"
        raise CommandError(f"{given}: URLs are not read, since nothing is fetched; {hint}", ExitCode.USAGE)
    if given == "-" or not Path(given).is_dir():
        yield given
        return
    inside = sorted(Path(given).rglob("*") if recursive else Path(given).iterdir())
    found = [str(it) for it in inside if it.suffix in SUFFIXES and it.is_file()]
    if not found:
        deeper = not recursive and any(it.is_dir() for it in inside)
        hint = "; -R reads its folders, too" if deeper else ""
        raise CommandError(f"{given}: no file in it ends with {', '.join(SUFFIXES)}{hint}")
    yield from found
