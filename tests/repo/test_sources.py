"""The rules know no source: what distinguishes one kind of workload from another stands in jobset_gate/sources (K1)."""

import ast
import re
from pathlib import Path

from jobset_gate.sources.table import SOURCES
from tests.repo.files import ROOT, strings

RULES = ("jobset_gate/barrier", "jobset_gate/explain", "jobset_gate/timeline")
NO_RULES = {
    "barrier/config.py",  # the field of JobSets
    "barrier/crd.py",
    "barrier/wire.py",  # objects as they come, by kind
    "timeline/decode.py",  # reads them
}
ALLOWED = {
    "barrier/model.py": {"jobset"},  # the source of a key that gives none
    "barrier/missing.py": {"job"},  # kubectl's word for the Jobs that each gang has
}


def name_of(path: Path) -> str:
    return "/".join(path.parts[-2:])


def files() -> list[Path]:
    found = [path for folder in RULES for path in (ROOT / folder).glob("**/*.py")]
    assert len(found) > 20
    return [path for path in found if name_of(path) not in NO_RULES]


def test_the_rules_compare_with_no_name_of_a_source_and_import_none() -> None:
    marks = {text for it in SOURCES.values() for text in (it.name, it.kind, it.gated, it.config_map_suffix)}
    for path in files():
        known = {text for _, text in strings(path)} & (marks - {"Job", "true", ""})
        assert known <= ALLOWED.get(name_of(path), set()), path
        imports = [it for it in ast.walk(ast.parse(path.read_text())) if isinstance(it, ast.ImportFrom)]
        assert not any((it.module or "").startswith("jobset_gate.sources") for it in imports), path


DEFAULTS = {
    "jobset_gate/cli/commands/release.py",
    "jobset_gate/cli/commands/wait.py",
    "jobset_gate/cli/doctor",
    "jobset_gate/cli/fetch/resolver.py",
    "jobset_gate/cli/fetch/view.py",
    "jobset_gate/cli/commands/get.py",
    "jobset_gate/injection/restore.py",
    "jobset_gate/injection/validate.py",
    "jobset_gate/settings.py",
    "controllers/statuspage/api.py",
    "controllers/statuspage/html.py",
    "webhook/registration.py",
}
"""Where JobSet is the default, or what only a JobSet has is handled."""


def test_the_recipe_of_the_architecture_names_every_place_that_knows_a_source() -> None:
    recipe = (ROOT / "docs/design/architecture.md").read_text().partition("## Recipe")[2]
    named = {*re.findall(r"`((?:jobset_gate|controllers|webhook)/[^`]*)`", recipe), *DEFAULTS}
    modules = {path.stem for path in (ROOT / "jobset_gate/sources").glob("*.py")} & SOURCES.keys()
    rows = {"JOBSET", "JOB", "LWS", "START_GROUP"}
    assert (len(rows), modules) == (len(SOURCES), set(SOURCES))
    knowing = []
    for package in ("jobset_gate", "controllers", "webhook"):
        for path in sorted((ROOT / package).glob("**/*.py")):
            where = str(path.relative_to(ROOT))
            imports = [it for it in ast.walk(ast.parse(path.read_text())) if isinstance(it, ast.ImportFrom)]
            known = {it.name for one in imports if one.module == "jobset_gate.sources.table" for it in one.names} & rows
            known |= {it.name for one in imports if one.module == "jobset_gate.sources" for it in one.names} & modules
            if known and not any(where.startswith(place.removesuffix("/")) for place in named):
                knowing.append(where)
    assert knowing == []
    assert all((ROOT / place).exists() for place in named)
