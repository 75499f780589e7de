"""Files and standard input to documents: YAML or JSON, one or many in each."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.manifests.yaml_loader import Places, TooManyValues, load_parts
from jobset_gate.objects.field_error import child_path as field_path

MOST_DIGITS: Final = 100
"""Of an integer in JSON that is read as one."""


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
    places: Places | None = None
    """Of the fields; None for JSON."""
    part: int = 0
    """Counts from 1 where one document of the source holds the metadata of several objects; else 0."""

    def place(self, path: str) -> tuple[int, int]:
        """Line and column of a field of it; of JSON where the document begins."""
        return (self.line, 1) if self.places is None else self.places.of(path)


def read(sources: Sequence[str], *, split: bool = False) -> list[ManifestDocument]:
    """The documents of all sources in order, empty ones left out. Raises CommandError when a source cannot be read.

    With `split`, a YAML document that gives `metadata` twice is read as the objects that are meant.
    """
    found = [document for source in sources for document in documents(source, split=split)]
    if not found:
        raise CommandError(f"no objects in {', '.join(source_name(it) for it in sources)}")
    return found


def documents(source: str, *, split: bool = False) -> Iterator[ManifestDocument]:
    """Those of one source; as `read`. Raises CommandError, a ManifestError for what is no YAML or JSON."""
    text, name = _text(source), source_name(source)
    try:
        yield from _documents(text, name, split=split)
    except ManifestError as problem:
        if "{{" not in text:
            raise
        hint = "a Helm template must be rendered first: helm template CHART | jobset-gate validate -f -"
        raise ManifestError(name, f"{problem.message}; {hint}", problem.line, problem.column) from problem


def _documents(text: str, name: str, *, split: bool) -> Iterator[ManifestDocument]:
    if text.lstrip().startswith("{"):
        decoded = list(_json(text, name))
        if decoded:
            yield from decoded
            return
    try:
        for number, parts in enumerate(load_parts(text, split=split), start=1):
            for part, (node, value) in enumerate(parts, start=1):
                if value is not None:
                    line = node.start_mark.line + 1
                    yield ManifestDocument(name, number, line, value, Places(node), part if len(parts) > 1 else 0)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ManifestError(name, f"invalid YAML: {problem.problem or problem.context}", line, column) from problem
    except (yaml.YAMLError, TooManyValues) as problem:
        raise ManifestError(name, f"invalid YAML: {problem}") from problem
    except RecursionError as problem:
        raise ManifestError(name, "nested too deeply") from problem


def _json(text: str, name: str) -> Iterator[ManifestDocument]:
    """JSON objects one after the other; nothing at all for a YAML flow mapping, which begins the same."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_doubles, parse_int=_integer)
    at, number, line, counted = _skip(text, 0), 0, 1, 0
    while at < len(text):
        number += 1
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = decoder.raw_decode(text, at)
        except _DuplicateKey as problem:
            raise ManifestError(name, f"in the JSON object that begins here {problem}", line) from problem
        except json.JSONDecodeError as problem:
            if number == 1 and _is_flow_yaml(text):
                return
            raise ManifestError(name, f"not JSON: {problem.msg}", problem.lineno, problem.colno) from problem
        except RecursionError as problem:
            raise ManifestError(name, "nested too deeply") from problem
        if not _can_be_sent(value):
            where = _no_number(value)
            message = "the JSON object that begins here holds a number or character JSON has not"
            raise ManifestError(name, f"{message} (at {where})" if where else message, line)
        yield ManifestDocument(name, number, line, value)
        at = _skip(text, at)


def _is_flow_yaml(text: str) -> bool:
    try:
        return any(True for _ in load_parts(text, split=False))
    except (yaml.YAMLError, TooManyValues, RecursionError):
        return False


def _can_be_sent(value: Any) -> bool:
    """Python's reader takes NaN, numbers beyond a float, and halves of characters."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _integer(digits: str) -> int | float:
    """Kubernetes knows integers of 64 bits; Python reads none of more than 4,300 digits."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _no_number(value: Any) -> str:
    """The path of the first number that is none; "" if there is none such."""
    reached = [("", value)]
    for path, each in reached:
        if isinstance(each, float) and not math.isfinite(each):
            return path
        if isinstance(each, dict):
            reached += [(field_path(path, key), member) for key, member in each.items()]
        elif isinstance(each, list):
            reached += [(field_path(path, index), entry) for index, entry in enumerate(each)]
    return ""


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
