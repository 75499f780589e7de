"""The sentences that stand in the code: docstrings of constants, fields and members, by name."""

import ast
import inspect
import re
from itertools import pairwise
from types import ModuleType
from typing import Any, Final

import msgspec

_PARAGRAPHS: Final = re.compile(r"\s*\((?:see )?[AGK]\d+(?:\.\d+)?(?:, [AGK]\d+(?:\.\d+)?)*\)")
"""Numbers of paragraphs of the contract, which only the code's readers have before them."""


def of(thing: ModuleType | type[Any]) -> dict[str, str]:
    """The docstring of each name that a module or a class assigns; those without one are absent."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(thing)))
    body = tree.body if isinstance(thing, ModuleType) else _class(tree).body
    found = {}
    for one, following in pairwise(body):
        text = _text(following)
        for name in _assigned(one) if text else ():
            found[name] = plain(text)
    return found


def inherited(model: type[Any]) -> dict[str, str]:
    """The same with what its bases say."""
    found: dict[str, str] = {}
    for base in reversed([it for it in model.__mro__ if it not in msgspec.Struct.__mro__]):
        found |= of(base)
    return found


def plain(text: str) -> str:
    """In one line, without the numbers of paragraphs."""
    return _PARAGRAPHS.sub("", " ".join(text.split()))


def sentence(text: str) -> str:
    """With a full stop."""
    return text if not text or text[-1] in ".:!?" else f"{text}."


def _class(tree: ast.Module) -> ast.ClassDef:
    (found,) = [it for it in tree.body if isinstance(it, ast.ClassDef)]
    return found


def _text(node: ast.stmt) -> str:
    it = node.value if isinstance(node, ast.Expr) else None
    return it.value if isinstance(it, ast.Constant) and isinstance(it.value, str) else ""


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return [it.id for it in node.targets if isinstance(it, ast.Name)] if isinstance(node, ast.Assign) else []
