"""Only names.py spells the names that we write into a cluster."""

import ast
from collections.abc import Iterator

from tests.repo.files import ROOT, shipped

SPELLED = ("jobset-gate.dev/", "jobset.sigs.k8s.io/")


def spelled_in(source: str) -> list[tuple[int, str]]:
    """Line and text of each string with such a name; docstrings may."""
    tree = ast.parse(source)
    docs = set(_docstrings(tree))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docs
        and any(name in node.value for name in SPELLED)
    ]


def _docstrings(tree: ast.AST) -> Iterator[int]:
    """Ids of the strings that stand alone as statements."""
    return (id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr))


def test_only_names_py_spells_names() -> None:
    home = ROOT / "jobset_gate" / "names.py"
    assert spelled_in(home.read_text()), "names.py is where they are spelled"
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in shipped()
        if path != home
        for line, text in spelled_in(path.read_text())
    ]
    assert found == []
