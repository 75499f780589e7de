"""What must not be in the code: exemptions from ruff's rules of security, keys, and TLS older than 1.2."""

import ast
import re
import tomllib

from tests.repo.files import ROOT, shipped, tracked

RUFF = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
SHIPPING = ("jobset_gate", "webhook", "controllers")


def security(rules: list[str]) -> list[str]:
    """Ruff's rules of the group S, which are bandit's."""
    return [rule for rule in rules if re.fullmatch(r"S\d+", rule)]


def test_ruffs_security_rules_are_on() -> None:
    """All of them, and for what ships everywhere but where the dice of the simulation are thrown."""
    exempt = {path: security(rules) for path, rules in RUFF["per-file-ignores"].items() if path.startswith(SHIPPING)}
    assert "S" in RUFF["select"]
    assert security(RUFF["ignore"]) == []
    assert {path: rules for path, rules in exempt.items() if rules} == {"jobset_gate_demo/**": ["S311"]}


def test_yaml_is_read_by_safe_loaders_alone() -> None:
    """Ruff looks at `yaml.load` alone; the others need the name of a loader, too."""
    unsafe = re.compile(r"\b(?:C?(?:Unsafe|Full)Loader|yaml\.C?Loader|(?:unsafe|full)_load)")
    assert [str(path.relative_to(ROOT)) for path in shipped() if unsafe.search(path.read_text())] == []


def test_an_exemption_from_a_security_rule_says_why() -> None:
    mute = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in shipped()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"# noqa: [A-Z0-9, ]*\bS\d+(?![A-Z0-9, ]*(  # | - )\w)", line)
    ]
    assert mute == []


def test_every_tls_context_that_serves_takes_1_2_at_least() -> None:
    """Where it is made; that older clients are turned away is tested with the webhook."""
    serving = [
        (f"{path.relative_to(ROOT)}:{function.lineno}", text)
        for path in shipped()
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and "PROTOCOL_TLS_SERVER" in (text := ast.unparse(function))
    ]
    assert serving
    assert [where for where, text in serving if ".minimum_version = ssl.TLSVersion.TLSv1_2" not in text] == []


def test_nobody_keeps_a_key_in_the_project() -> None:
    """Put together from pieces, so that this file has none."""
    key = re.compile(b"-----BEGIN " + rb"([A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/]{16}")
    assert [str(path.relative_to(ROOT)) for path in tracked() if key.search(path.read_bytes())] == []
