"""What the image has to be, as far as its files say it."""

import re

from tests.repo.files import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LINES = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]


def arguments(word: str, lines: list[str]) -> list[str]:
    """What follows this instruction, each time it is given."""
    return [line.removeprefix(word).strip() for line in lines if line.startswith(word + " ")]


def last_stage() -> list[str]:
    return LINES[max(number for number, line in enumerate(LINES) if line.startswith("FROM ")) :]


def test_it_runs_as_a_number_that_is_not_root() -> None:
    """A number: with a name, the kubelet could not verify runAsNonRoot."""
    assert arguments("USER", last_stage()) == ["65532:65532"]


def test_the_base_image_is_an_argument_of_every_stage_whose_default_names_no_host_and_is_always_the_same() -> None:
    assert LINES[0].startswith("ARG BASE=")
    assert {line.split()[0] for line in arguments("FROM", LINES)} == {"${BASE}"}
    (base,) = [line.removeprefix("BASE=") for line in arguments("ARG", LINES) if line.startswith("BASE=")]
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", base)


def test_every_package_is_locked() -> None:
    """One list of arguments for all that pip fetches."""
    assert [line for line in LINES if "set -- install" in line and "--require-hashes" in line]
    fetched = re.findall(r"pip (?:--python \S+ )?(install|wheel|\"\$@\")([^;]*)", " ".join(LINES))
    assert fetched
    assert [rest for verb, rest in fetched if verb != '"$@"' and "--no-index" not in rest] == []


def test_the_context_holds_neither_the_embedded_cluster_nor_the_demo() -> None:
    """The first line leaves out everything, and no later one takes them in."""
    ignored = [it for it in (ROOT / ".dockerignore").read_text().splitlines() if not it.startswith("#")]
    assert ignored[0] == "*"
    assert not [it for it in ignored if it.startswith("!jobset_gate_demo") or it in ("!jobset_gate*", "!*")]
