"""Files, folders and standard input to documents: YAML or JSON, one or many in each."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.manifests.yaml_text import TooManyValues, load, number
from jobset_gate.cli.options import option
from jobset_gate.objects.unstructured import format_path, walk


class ManifestError(CommandError):
    """A source that cannot be read as a manifest, and where; the line is 0 where only the source is known."""

    def __init__(self, source: str, message: str, line: int = 0, column: int = 0) -> None:
        where = f":{line}:{column}" if column else f":{line}" if line else ""
        super().__init__(f"{source}{where}: {message}")
        self.source, self.message, self.line, self.column = source, message, line, column


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """One document of one source. `number` counts from 1, `line` is where it begins."""

    source: str
    number: int
    line: int
    value: Any
    place_in: Callable[[str], tuple[int, int]] | None = None
    """Line and column of a field; None for JSON."""
    part: int = 0
    """Counts from 1 where one document of the source holds the metadata of several objects; else 0."""

    def place(self, path: str) -> tuple[int, int]:
        """Line and column of a field of it; of JSON where the document begins."""
        return (self.line, 1) if self.place_in is None else self.place_in(path)


def read(sources: Sequence[str]) -> list[ManifestDocument]:
    """The documents of all sources in order, empty ones left out. Raises CommandError when a source cannot be read."""
    found = [document for source in sources for document in documents(source)]
    if not found:
        raise CommandError(f"no objects in {', '.join(source_name(it) for it in sources)}")
    return found


def documents(source: str, *, split: bool = False) -> Iterator[ManifestDocument]:
    """Those of one source; with `split`, a YAML document that gives `metadata` twice is the objects that are meant.

    Raises CommandError, a ManifestError for what is no YAML or JSON.
    """
    text, name = _text(source), source_name(source)
    try:
        yield from _documents(text, name, split=split)
    except ManifestError as problem:
        if "{{" not in text:
            raise
        hint = "a Helm template must be rendered first: helm template CHART | jobset-gate validate -f -"
        raise ManifestError(name, f"{problem.message}; {hint}", problem.line, problem.column) from problem


def _documents(text: str, name: str, *, split: bool) -> Iterator[ManifestDocument]:
    if not text.lstrip().startswith("{"):
        yield from _yaml(text, name, split=split)
        return
    try:
        found = list(_json(text, name))
    except ManifestError:
        try:
            found = list(_yaml(text, name, split=split))  # a flow mapping begins the same
        except ManifestError:
            found = []
        if not found:
            raise
    yield from found


def _yaml(text: str, name: str, *, split: bool) -> Iterator[ManifestDocument]:
    try:
        for number, document in enumerate(load(text, split=split), start=1):
            parts = document.parts if document is not None else ()
            for part, (root, value) in enumerate(parts, start=1):
                if value is not None and document is not None:
                    line, place = root.start_mark.line + 1, partial(document.place, root)
                    _require_json(value, "document", name, line)
                    yield ManifestDocument(name, number, line, value, place, part if len(parts) > 1 else 0)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ManifestError(name, f"invalid YAML: {problem.problem or problem.context}", line, column) from problem
    except (yaml.YAMLError, TooManyValues) as problem:
        raise ManifestError(name, f"invalid YAML: {problem}") from problem
    except RecursionError as problem:
        raise ManifestError(name, "nested too deeply") from problem


def _json(text: str, name: str) -> Iterator[ManifestDocument]:
    """JSON objects one after the other."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_doubles, parse_int=number)
    at, count, line, counted = _skip(text, 0), 0, 1, 0
    while at < len(text):
        count += 1
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = decoder.raw_decode(text, at)
        except _DuplicateKey as problem:
            raise ManifestError(name, f"in the JSON object that begins here {problem}", line) from problem
        except json.JSONDecodeError as problem:
            raise ManifestError(name, f"not JSON: {problem.msg}", problem.lineno, problem.colno) from problem
        except RecursionError as problem:
            raise ManifestError(name, "nested too deeply") from problem
        _require_json(value, "JSON object", name, line)
        yield ManifestDocument(name, count, line, value)
        at = _skip(text, at)


def _require_json(value: Any, what: str, name: str, line: int) -> None:
    """Python's readers take NaN, numbers beyond a float, and halves of characters. Raises ManifestError."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as problem:
        wrong = (path for path, it in walk(value) if isinstance(it, float) and not math.isfinite(it))
        where = format_path(next(wrong, ()))
        message = f"the {what} that begins here holds a number or character JSON has not"
        raise ManifestError(name, f"{message} (at {where})" if where else message, line) from problem


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


class _DuplicateKey(ValueError):
    """An object that has a key twice."""


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _DuplicateKey(f"the key {key!r} is given twice: kubectl silently takes the last value")
        made[key] = value
    return made


def _text(source: str) -> str:
    name = source_name(source)
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as problem:
        raise CommandError(f"{name}: {problem.strerror}") from problem
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise ManifestError(name, "not UTF-8", line) from problem


def source_name(source: str) -> str:
    """What a source is called in messages."""
    return "stdin" if source == "-" else source


# --- Which files ------------------------------------------------------------------------------------------------------

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
