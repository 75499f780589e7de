"""docs/reference/ is what the code makes of it, and leaves nothing out."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import msgspec
import pytest

from controllers.barrier.status import _WARNINGS
from controllers.podgroups.metrics import REASONS
from docs.make import jobset_fields, keys, reasons, settings
from docs.make.api_schemas import API_SCHEMAS
from docs.make.metrics import rows
from docs.make.pages import FOLDER, PAGES
from docs.make.schemas import SCHEMAS
from jobset_gate import names
from jobset_gate.cli.app import command_tree
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests.schema import SCALARS
from jobset_gate.cli.settings_file import ControllerSection
from jobset_gate.podgroups.events import TRANSIENT_REASONS, WARNING_REASONS
from jobset_gate.settings import Settings
from tests.repo.files import ROOT

STALE = "is not what the code makes of it any more: run `make reference`"


def test_each_page_is_what_the_code_makes_of_it_on_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERMINAL_WIDTH", "40")
    there = {it.name: it.read_text() for it in (ROOT / FOLDER).iterdir()}
    stale = [name for name in PAGES.keys() | there if name not in PAGES or there.get(name) != PAGES[name]()]
    assert stale == [], f"{FOLDER}/ {STALE}"


def test_the_table_of_jobsets_fields_is_what_its_sources_make_of_it() -> None:
    assert (ROOT / jobset_fields.TABLE).read_text() == jobset_fields.text(), f"{jobset_fields.TABLE} {STALE}"
    types = {line.split()[0]: line.split()[1:] for line in jobset_fields.text().splitlines()}
    used = {it.partition(":")[2].lstrip("[]{}") for its in types.values() for it in its}
    assert used - {*types, *SCALARS, "any"} == {it for it in used if "|" in it}


def test_every_key_of_ours_has_its_writer_and_its_reader() -> None:
    documented = {it.key: it for it in keys.documented()}
    ours = {it for it in vars(names).values() if isinstance(it, str) and it.startswith(f"{names.DOMAIN}/")}
    assert ours <= set(documented)
    assert [
        key for key in ours if not (documented[key].meaning and documented[key].written and documented[key].read)
    ] == []


def test_every_reason_is_there_with_its_object_and_warning_events_are_marked() -> None:
    documented = {word: of for word, of, _ in reasons.reasons()}
    assert set(documented) == {value for key, value in vars(names).items() if key.startswith("REASON_")}
    assert set(REASONS) - {word for word, of in documented.items() if "pod group" in of} == {names.REASON_TIMED_OUT}
    assert [word for word in _WARNINGS | WARNING_REASONS if "a Warning Event" not in documented[word]] == []
    assert [word for word in TRANSIENT_REASONS if "a Normal Event" not in documented[word]] == []


def test_every_command_option_and_metric_has_its_sentence() -> None:
    page = (ROOT / FOLDER / "commands.md").read_text()
    assert set(re.findall(r"^## ([a-z-]+)", page, re.MULTILINE)) >= set(command_tree("jobset-gate").commands)
    options = re.findall(r"^\| `-.+?` \| [^|]*\| ([^|]*)\|$", page.replace("\\|", ""), re.MULTILINE)
    assert len(options) > 60
    assert [it for it in (*options, *(it.meaning for it in rows())) if len(it.strip()) < 10] == []


def test_every_setting_of_the_file_has_its_sentence() -> None:
    models = [ControllerSection, *(it.type for it in msgspec.structs.fields(Settings))]
    silent = [row for model in models for row in settings.fields(model) if len(row[3]) < 10]
    assert silent == []


def test_exit_codes_are_those_of_the_program() -> None:
    page = (ROOT / FOLDER / "exit-codes.md").read_text()
    assert re.findall(r"^\| `(\d)` \| ([A-Z]+) ", page, re.MULTILINE) == [(str(it.value), it.name) for it in ExitCode]
    assert f"| `{names.EXIT_TIMED_OUT}` | Timed out. |" in page


def test_every_json_schema_is_one_and_every_field_says_what_it_means() -> None:
    def silent(schema: Any, path: str) -> Iterator[str]:
        for name, field in schema.get("properties", {}).items():
            yield from [] if field.get("description") else [f"{path}.{name}"]
            yield from silent(field, f"{path}.{name}")
        yield from silent(schema.get("items", {}), f"{path}[]") if "items" in schema else ()

    for command, schema in {**SCHEMAS, **API_SCHEMAS}.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert (bool(schema["title"]), [*silent(schema, "")]) == (True, []), command
