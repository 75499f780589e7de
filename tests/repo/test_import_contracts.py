"""The import contracts of pyproject.toml (`make contracts`) leave no package of the rules out."""

import tomllib

from tests.repo.files import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
IMPURE = {"cli", "kube", "runtime"}


def test_every_package_of_the_rules_is_under_the_contract_of_the_pure() -> None:
    pure = next(contract for contract in CONTRACTS if contract["id"] == "pure")
    found = (
        path for path in (ROOT / "jobset_gate").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    modules = {f"jobset_gate.{path.stem}" for path in found if path.stem not in IMPURE | {"__init__"}}
    assert set(pure["source_modules"]) == modules
