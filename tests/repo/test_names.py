"""Only names.py spells the names that we write into a cluster."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo.files import ROOT, shipped

SPELLED = ("jobset-gate.dev/", "jobset.sigs.k8s.io/")


def spelled_in(source: str) -> list[tuple[int, str]]:
    """Line and text of each string with such a name; docstrings may tell people about them."""
    tree = ast.parse(source)
    told = set(_docstrings(tree))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in told
        and any(name in node.value for name in SPELLED)
    ]


def _docstrings(tree: ast.AST) -> Iterator[int]:
    """Ids of the strings that stand alone as statements."""
    return (id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr))


@pytest.mark.parametrize("path", shipped(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_spells_no_names(path: Path) -> None:
    if path == ROOT / "jobset_gate" / "names.py":
        assert spelled_in(path.read_text()), "names.py is where they are spelled"
        return
    assert spelled_in(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('KEY = "jobset-gate.dev/epoch"', [1]),
        ('x = 1\ny = f"jobset.sigs.k8s.io/{x}"', [2]),
        ('"""Writes jobset-gate.dev/epoch."""', []),
        ('KEY = "jobset-gate"', []),
    ],
)
def test_the_check_sees_constants_and_f_strings_but_no_docstrings(source: str, lines: list[int]) -> None:
    assert [line for line, _ in spelled_in(source)] == lines
