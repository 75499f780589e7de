"""Documents: links lead somewhere, every reason and setting is explained, every command exists."""

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from controllers.podgroups.metrics import REASONS
from jobset_gate import names
from jobset_gate.barrier.model import PendingReason
from jobset_gate.cli.app import command_tree
from jobset_gate.explain.model import GangState
from jobset_gate.settings import Groups
from tests.chart.helm import defaults
from tests.repo.documents import anchors, blocks, commands, documents, name, prose
from tests.repo.files import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
NAMED = re.compile(r"`((?:tests|e2e|examples|release|charts|jobset_gate)/[\w./-]+)`")


# --- Links and names -------------------------------------------------------------------------------------------------


def broken(document: Path) -> list[str]:
    found = []
    for path, heading in LINK.findall(prose(document)):
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            found.append(f"{document.relative_to(ROOT)}: {path}#{heading}")
    return found


def test_every_link_leads_to_a_heading_and_every_file_that_a_document_names_exists() -> None:
    assert [one for document in documents() for one in broken(document)] == []
    named = [(document, it) for document in documents() for it in NAMED.findall(document.read_text())]
    assert [f"{document.relative_to(ROOT)}: {it}" for document, it in named if not (ROOT / it).exists()] == []


def test_the_index_names_every_page_of_the_folder() -> None:
    index = DOCS / "README.md"
    linked = {(index.parent / path).resolve() for path, _ in LINK.findall(index.read_text()) if path}
    pages = {it for it in documents() if DOCS in it.parents and it != index}
    assert pages - linked == set()


def test_each_row_of_the_operations_says_how_far_it_is_shown_and_where() -> None:
    rows = [line for line in (DOCS / "operations.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    found = [row for row in cells if row[0] != "row"]
    assert len(found) > 30
    states = {"proven", "checked", "by hand"}
    assert [row for row in found if row[1] not in states or not re.search(r"`(tests|e2e)/", row[2])] == []
    assert [row for row in found if row[1] == "by hand" and not row[3]] == []


# --- Reasons and states ----------------------------------------------------------------------------------------------

TROUBLE = (DOCS / "troubleshooting.md").read_text()
REASONS_PART = TROUBLE.partition("\n## Reasons and states\n")[2]
GROUPS_REFERENCE = (DOCS / "pod-groups-reference.md").read_text()
ROW = re.compile(r"^\| `(\w+)`(?: \*)? \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next of its level."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1 |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[2]


def rows(text: str) -> dict[str, tuple[str, str]]:
    return {word: (meaning.strip(), remedy.strip()) for word, meaning, remedy in ROW.findall(text)}


def test_every_reason_and_state_is_explained_and_no_other() -> None:
    reasons = {value for key, value in vars(names).items() if key.startswith("REASON_")}
    pending, states = {it.value for it in PendingReason}, {it.value for it in GangState}
    explained = rows(REASONS_PART)
    in_groups = set(re.findall(r"^\| `(\w+)` \|", GROUPS_REFERENCE, re.MULTILINE))
    assert {word for word in reasons if f"`{word}`" not in REASONS_PART} == set()
    assert reasons - explained.keys() - in_groups == set()
    assert rows(section(TROUBLE, "Why a pod is missing")).keys() == pending
    assert states - rows(section(TROUBLE, "What is true of a gang")).keys() == set()
    assert explained.keys() - reasons - pending - states == set()
    thin = [word for word, (meaning, remedy) in rows(TROUBLE).items() if len(meaning) < 15 or len(remedy) < 5]
    assert thin == []


# --- Pod groups ------------------------------------------------------------------------------------------------------


def test_every_reason_of_a_waiting_group_has_its_meaning_and_what_to_do() -> None:
    found = rows(section(GROUPS_REFERENCE, "Reasons"))
    assert found.keys() == set(REASONS)
    assert all(len(meaning) > 15 and len(remedy) > 5 for meaning, remedy in found.values())


def _whole(value: object) -> object:
    """300.0 is written as 300."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_every_setting_of_groups_is_there_with_its_default_and_the_chart_has_the_same() -> None:
    found = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section(GROUPS_REFERENCE, "Settings"), re.MULTILINE))
    program: dict[str, Any] = {
        key: _whole(one) for key, one in msgspec.json.decode(msgspec.json.encode(Groups())).items()
    }
    assert found.keys() == program.keys()
    wrong = [
        key for key, default in found.items() if key != "ways" and yaml.safe_load(default.strip("`")) != program[key]
    ]
    assert wrong == []
    assert json.dumps(defaults()["groups"], sort_keys=True) == json.dumps(program, sort_keys=True)


# --- Commands ---------------------------------------------------------------------------------------------------------

OURS = re.compile(r"^(?:kubectl )?jobset-gate(?: (?! )(.*))?$")
"""More than one blank after it: a row of a table that was printed."""


@cache
def program() -> Any:
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


def _with_values(command: Any) -> set[str]:
    return {opt for it in command.params for opt in it.opts if opt.startswith("-") and not it.is_flag}


def _options(command: Any) -> set[str]:
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
