"""Label and field selectors: text -> predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.responses import Obj, bad_request
from jobset_gate.objects.unstructured import nested

_LabelTest = Callable[[Mapping[str, str]], bool]


class Selectable(Protocol):
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def fields(self) -> Mapping[str, str]:
        """Values by path; an absent one counts as empty."""


Predicate = Callable[[Selectable], bool]

_COMMA = re.compile(r",(?![^(]*\))")
_IN = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^=!<>\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^=!<>\s]*)$")
_EXISTS = re.compile(r"^(?P<no>!?)\s*(?P<key>[A-Za-z0-9]([-A-Za-z0-9_./]*))$")

_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): ("spec.nodeName", "spec.schedulerName", "status.phase"),
    ("", "events"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "type",
    ),
    ("", "namespaces"): ("status.phase",),
}
"""The fields by which the server can select, in addition to metadata.name and metadata.namespace."""


@lru_cache(maxsize=1024)
def label_tests(text: str) -> tuple[_LabelTest, ...]:
    return tuple(_label_test(part.strip()) for part in _COMMA.split(text) if part.strip())


def _label_test(part: str) -> _LabelTest:
    if found := _IN.match(part):
        key, values = found["key"], frozenset(value.strip() for value in found["values"].split(","))
        wanted = found["op"] == "in"
        return lambda labels: (labels.get(key) in values) is wanted
    if found := _EQUAL.match(part):
        key, value, equal = found["key"], found["value"], found["op"] != "!="
        return lambda labels: (labels.get(key) == value) is equal
    if found := _EXISTS.match(part):
        key, present = found["key"], not found["no"]
        return lambda labels: (key in labels) is present
    raise bad_request(f"unable to parse requirement: {part!r}")


def _field_tests(kind: ServedKind, text: str) -> Iterable[Predicate]:
    known = _known(kind)
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _EQUAL.match(part)
        if found is None:
            raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
        if found["key"] not in known:
            listed = ", ".join(f'"{name}"' for name in known)
            raise bad_request(f'"{found["key"]}" is not a known field selector: only {listed}')
        yield _field_test(found["key"], found["value"], equal=found["op"] != "!=")


def _known(kind: ServedKind) -> tuple[str, ...]:
    return ("metadata.name", "metadata.namespace", *_FIELDS.get(kind.key, ()))


def _field_test(path: str, value: str, *, equal: bool) -> Predicate:
    return lambda row: (row.fields.get(path, "") == value) is equal


def selectable(kind: ServedKind, obj: Obj) -> dict[str, str]:
    """The values that field selectors compare, empty ones left out."""
    found = ((path, _text(nested(obj, *path.split(".")))) for path in _known(kind))
    return {path: text for path, text in found if text}


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def predicate(kind: ServedKind, labels: str, fields: str) -> Predicate | None:
    """One predicate for both selectors, None when everything matches. Errors: StatusError 400."""
    tests = label_tests(labels)
    field_tests = tuple(_field_tests(kind, fields))
    if not tests and not field_tests:
        return None

    def matches(row: Selectable) -> bool:
        labels = row.labels
        return all(test(labels) for test in tests) and all(test(row) for test in field_tests)

    return matches
