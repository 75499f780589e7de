"""What `get -w` prints in each form: everything once, then what has changed, and once what has gone."""

from __future__ import annotations

import json

import pytest
import yaml

from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers.items import ItemPrinter, PrintedItem

TITLES = ("NAME", "STATE", "AGE")
WATCHED = (
    [("a", "Waiting", "1s"), ("b", "Waiting", "1s")],
    [("a", "Waiting", "9s"), ("b", "Released", "9s")],
    [("b", "Released", "20s"), ("long-name", "Waiting", "0s")],
)
"""What there is at three moments; the age alone is no news."""
TABLE = """\
NAME   STATE     AGE
a      Waiting   1s
b      Waiting   1s
b      Released   9s
a           Deleted    9s
long-name   Waiting    0s
"""
DOCUMENTS = [("a", "Waiting"), ("b", "Waiting"), ("b", "Released"), ("a", "Deleted"), ("long-name", "Waiting")]


def item(name: str, state: str, age: str) -> PrintedItem:
    document = {"name": name, "state": state, "at": age, "secondsLeft": age}
    return PrintedItem((name,), dict(zip(TITLES, (name, state, age), strict=True)), lambda: document, f"gang/{name}")


def printed(capsys: pytest.CaptureFixture[str], output: OutputFormat, *, headers: bool = True) -> str:
    printer = ItemPrinter(output, "GangList", "STATE", "state", headers=headers)
    for moment in WATCHED:
        printer.print_changes([item(*cells) for cells in moment])
    return capsys.readouterr().out


def test_a_table_whose_columns_grow(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, OutputFormat.TABLE) == TABLE
    bare = printed(capsys, OutputFormat.WIDE, headers=False)
    assert [line.split() for line in bare.splitlines()] == [line.split() for line in TABLE.splitlines()[1:]]


def test_documents_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    text, decoder, found = printed(capsys, OutputFormat.JSON), json.JSONDecoder(), []
    while text.strip():
        document, end = decoder.raw_decode(text.lstrip())
        found.append((document["name"], document["state"]))
        text = text.lstrip()[end:]
    assert found == DOCUMENTS
    loaded = list(yaml.safe_load_all(printed(capsys, OutputFormat.YAML)))
    assert [(it["name"], it["state"]) for it in loaded] == DOCUMENTS


def test_names_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, OutputFormat.NAME).split() == [f"gang/{name}" for name, _ in DOCUMENTS]
