"""Only names.py spells the names that we write into a cluster."""

from pathlib import Path

from tests.repo.files import ROOT, shipped, strings

SPELLED = ("jobset-gate.dev/", "jobset.sigs.k8s.io/")


def spelled_in(file: Path) -> list[str]:
    """Where such a name stands; docstrings may have it."""
    found = [(line, text) for line, text in strings(file) if any(name in text for name in SPELLED)]
    return [f"{file.relative_to(ROOT)}:{line}: {text}" for line, text in found]


def test_only_names_py_spells_names() -> None:
    home = ROOT / "jobset_gate" / "names.py"
    assert spelled_in(home), "names.py is where they are spelled"
    assert [it for path in shipped() if path != home for it in spelled_in(path)] == []
