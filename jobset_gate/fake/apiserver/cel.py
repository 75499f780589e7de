"""The part of CEL that match conditions and CRD rules use, with CEL's own idea of errors.

A missing field is an error; `&&` and `||` forgive an error on either side when the other side decides. Supported: field
selection, indexing, has(), in, ternary, comparisons, arithmetic, list and map literals, type, size, int, string, bool,
double, exists, all, exists_one, filter, map, startsWith, endsWith, contains, matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jobset_gate.fake.apiserver import celvalues
from jobset_gate.fake.apiserver.celparse import CelError, Node, Parser

__all__ = ["CelError", "evaluate"]

Variables = Mapping[str, Any]
_Code = Callable[[Variables], Any]


@lru_cache(maxsize=512)
def _compiled(text: str) -> _Code:
    return _compile(Parser(text).parse())


def evaluate(text: str, variables: Variables) -> Any:
    """The value of an expression. Errors: CelError."""
    return _compiled(text)(variables)


def _compile(node: Node) -> _Code:
    return _COMPILERS[node[0]](*node[1:])


def _literal(value: Any) -> _Code:
    return lambda _: value


def _name(text: str) -> _Code:
    def run(variables: Variables) -> Any:
        if text in variables:
            return variables[text]
        if text in celvalues.TYPES:
            return celvalues.TYPES[text]
        raise CelError(f"undeclared reference to '{text}'")

    return run


def _list(nodes: list[Node]) -> _Code:
    items = [_compile(node) for node in nodes]
    return lambda variables: [item(variables) for item in items]


def _map(entries: list[tuple[Node, Node]]) -> _Code:
    pairs = [(_compile(key), _compile(value)) for key, value in entries]
    return lambda variables: {key(variables): value(variables) for key, value in pairs}


def _field(node: Node, name: str) -> _Code:
    of = _compile(node)
    return lambda variables: celvalues.select(of(variables), name)


def _index(node: Node, place: Node) -> _Code:
    of, at = _compile(node), _compile(place)

    def run(variables: Variables) -> Any:
        value, key = of(variables), at(variables)
        if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(value):
                raise CelError(f"index out of bounds: {key}")
            return value[key]
        return celvalues.select(value, key)

    return run


def _not(node: Node) -> _Code:
    of = _compile(node)
    return lambda variables: not celvalues.truth(of(variables))


def _minus(node: Node) -> _Code:
    of = _compile(node)
    return lambda variables: -celvalues.number(of(variables))


def _if(condition: Node, then: Node, otherwise: Node) -> _Code:
    test, yes, no = _compile(condition), _compile(then), _compile(otherwise)
    return lambda variables: yes(variables) if celvalues.truth(test(variables)) else no(variables)


def _operation(symbol: str, left: Node, right: Node) -> _Code:
    one, two = _compile(left), _compile(right)
    if symbol in ("&&", "||"):
        return _logic(one, two, decisive=symbol == "||")
    act = celvalues.OPERATORS[symbol]
    return lambda variables: act(one(variables), two(variables))


def _logic(one: _Code, two: _Code, *, decisive: bool) -> _Code:
    """`decisive` is the value that settles the matter whatever the other side is, even an error."""

    def run(variables: Variables) -> bool:
        try:
            if celvalues.truth(one(variables)) is decisive:
                return decisive
        except CelError:
            if celvalues.truth(two(variables)) is decisive:
                return decisive
            raise
        return celvalues.truth(two(variables))

    return run


def _call(function: str, arguments: list[Node]) -> _Code:
    if function == "has" and len(arguments) == 1 and arguments[0][0] == "field":
        of, name = _compile(arguments[0][1]), arguments[0][2]
        return lambda variables: celvalues.has(of(variables), name)
    if function not in celvalues.FUNCTIONS or len(arguments) != 1:
        raise CelError(f"undeclared reference to '{function}'")
    act, argument = celvalues.FUNCTIONS[function], _compile(arguments[0])
    return lambda variables: act(argument(variables))


def _method(node: Node, name: str, arguments: list[Node]) -> _Code:
    of = _compile(node)
    if name in _MACROS and len(arguments) == 2 and arguments[0][0] == "name":
        return _macro(of, _MACROS[name], arguments[0][1], _compile(arguments[1]))
    if name == "size" and not arguments:
        return lambda variables: celvalues.size(of(variables))
    if name not in celvalues.TEXT_METHODS or len(arguments) != 1:
        raise CelError(f"undeclared reference to '{name}'")
    act, argument = celvalues.TEXT_METHODS[name], _compile(arguments[0])

    def run(variables: Variables) -> bool:
        value, other = of(variables), argument(variables)
        if not isinstance(value, str) or not isinstance(other, str):
            raise CelError("no such overload")
        return act(value, other)

    return run


def _macro(of: _Code, fold: Callable[[list[Any], _Code], Any], variable: str, body: _Code) -> _Code:
    def run(variables: Variables) -> Any:
        group = of(variables)
        if not isinstance(group, list | dict):
            raise CelError("no such overload")
        scopes: list[Any] = [{**variables, variable: item} for item in group]
        return fold(scopes, lambda scope: (scope[variable], body(scope)))

    return run


def _any_is(scopes: list[Any], body: _Code, wanted: bool) -> bool:
    """Whether some item has the wanted truth; errors count only when none has."""
    failed: CelError | None = None
    for scope in scopes:
        try:
            if celvalues.truth(body(scope)[1]) is wanted:
                return True
        except CelError as error:
            failed = error
    if failed is not None:
        raise failed
    return False


_MACROS: dict[str, Callable[[list[Any], _Code], Any]] = {
    "exists": lambda scopes, body: _any_is(scopes, body, wanted=True),
    "all": lambda scopes, body: not _any_is(scopes, body, wanted=False),
    "exists_one": lambda scopes, body: sum(celvalues.truth(body(scope)[1]) for scope in scopes) == 1,
    "filter": lambda scopes, body: [item for item, kept in map(body, scopes) if celvalues.truth(kept)],
    "map": lambda scopes, body: [made for _, made in map(body, scopes)],
}

_COMPILERS: dict[str, Callable[..., _Code]] = {
    "lit": _literal,
    "name": _name,
    "list": _list,
    "map": _map,
    "field": _field,
    "index": _index,
    "not": _not,
    "minus": _minus,
    "if": _if,
    "op": _operation,
    "call": _call,
    "method": _method,
}
