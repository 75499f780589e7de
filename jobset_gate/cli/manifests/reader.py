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
from jobset_gate.cli.manifests.yaml_loader import LineNumbers, TooManyValues, load_parts
from jobset_gate.objects.field_error import child_path as field_path

MOST_DIGITS: Final = 100
"""Of an integer in JSON that is read as one."""


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """One document of one source. `number` counts from 1, `line` is where it begins."""

    source: str
    number: int
    line: int
    value: Any
    lines: LineNumbers | None = None
    """Of the fields; None for JSON."""
    part: int = 0
    """Counts from 1 where one document of the source holds the metadata of several objects; else 0."""

    def line_at(self, path: str) -> int:
        """The line of a field of it."""
        return self.line if self.lines is None else self.lines.of(path)


def read(sources: Sequence[str], *, split: bool = False) -> list[ManifestDocument]:
    """The documents of all sources in order, empty ones left out. Raises CommandError when a source cannot be read.

    With `split`, a YAML document that gives `metadata` twice is read as the objects that are meant.
    """
    found = [document for source in sources for document in _documents(source, split=split)]
    if not found:
        raise CommandError(f"no objects in {', '.join(_named(it) for it in sources)}")
    return found


def _documents(source: str, *, split: bool) -> Iterator[ManifestDocument]:
    text, name = _text(source), _named(source)
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
                    yield ManifestDocument(name, number, line, value, LineNumbers(node), part if len(parts) > 1 else 0)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise CommandError(f"{where}: invalid YAML: {problem.problem or problem.context}") from problem
    except (yaml.YAMLError, TooManyValues) as problem:
        raise CommandError(f"{name}: invalid YAML: {problem}") from problem
    except RecursionError as problem:
        raise CommandError(f"{name}: nested too deeply") from problem


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
            raise CommandError(f"{name}:{line}: in the JSON object that begins here {problem}") from problem
        except json.JSONDecodeError as problem:
            if number == 1 and _is_flow_yaml(text):
                return
            raise CommandError(f"{name}:{problem.lineno}:{problem.colno}: not JSON: {problem.msg}") from problem
        except RecursionError as problem:
            raise CommandError(f"{name}: nested too deeply") from problem
        if not _can_be_sent(value):
            where = _no_number(value)
            message = f"{name}:{line}: the JSON object that begins here holds a number or character JSON has not"
            raise CommandError(f"{message} (at {where})" if where else message)
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
            raise _DuplicateKey(f"the key {key!r} is given twice")
        made[key] = value
    return made


def _text(source: str) -> str:
    name = _named(source)
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as problem:
        raise CommandError(f"{name}: {problem.strerror}") from problem
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise CommandError(f"{name}:{line}: not UTF-8") from problem


def _named(source: str) -> str:
    return "stdin" if source == "-" else source
