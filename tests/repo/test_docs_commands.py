"""The commands and options that documents tell people to type are those that the program has."""

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING

import yaml

from jobset_gate.cli.app import command_tree
from tests.repo.documents import blocks, commands, documents, name
from tests.repo.files import ROOT

if TYPE_CHECKING:
    from typing import Any

OURS = re.compile(r"^(?:kubectl )?jobset-gate(?: (?! )(.*))?$")
"""More than one blank after it: a row of a table that was printed."""


@cache
def program() -> "Any":
    """The command line as click knows it."""
    return command_tree("jobset-gate")


def wrong(line: str) -> str:
    """What of this command line the program does not have; "" if it has it all."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    command, options = program(), _options(program())
    takes_one = False
    for word in words:
        if takes_one:
            takes_one = False
            continue
        if word in {">", "2>", "<", "&", "..."}:
            break
        if word.startswith("-"):
            if word.partition("=")[0] not in options and not re.fullmatch(r"-\d+", word):
                return word
            takes_one = "=" not in word and word in _with_values(command)
            continue
        if getattr(command, "commands", None):
            if word not in command.commands:
                return word
            command = command.commands[word]
            options |= _options(command)
    return ""


def _with_values(command: "Any") -> set[str]:
    return {opt for it in command.params for opt in it.opts if opt.startswith("-") and not it.is_flag}


def _options(command: "Any") -> set[str]:
    found = {opt for it in command.params for opt in (*it.opts, *it.secondary_opts) if opt.startswith("-")}
    return found | {"--help", "-h"}


def test_every_command_of_a_document_exists() -> None:
    typed = [
        (name(document), found.group(1) or "")
        for document in documents()
        if document.name != "CHANGELOG.md"
        for it in commands(document.read_text())
        if (found := OURS.match(it.strip()))
    ]
    assert len(typed) > 60
    assert [f"{page}: jobset-gate {it}: no {bad}" for page, it in typed if (bad := wrong(it))] == []
    for line, bad in (("get groups -A -o wide", ""), ("whine N", "whine"), ("get cakes", "cakes"), ("why N -Q", "-Q")):
        assert wrong(line) == bad


def test_the_targets_of_make_that_documents_name_exist() -> None:
    known = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for document in documents()
        for it in commands(document.read_text())
        if (found := re.match(r"make ((?:[a-z][\w-]*(?: |$))+)", it.strip()))
        for target in found.group(1).split()
    }
    assert len(named) > 10
    assert named - known == set()


def test_every_manifest_and_setting_is_yaml() -> None:
    for document in documents():
        for block in blocks(document.read_text(), "yaml"):
            assert [it for it in yaml.safe_load_all(block) if isinstance(it, dict)], (name(document), block)
