"""JSONPath as kubectl has it: what templates print, how columns and sorting read paths, and what is refused."""

from typing import Any

import pytest
import typer

from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import has_fields
from jobset_gate.cli.printers.jsonpath import BadPath, Template, parse_path
from jobset_gate.cli.printers.listing import column_cells, parse_output, parse_sort_by, sort_documents

TRAIN: dict[str, Any] = {
    "name": "train-2",
    "started": 7,
    "secondsLeft": 280.0,
    "labels": {"app.kubernetes.io/name": "x"},
    "missing": [{"reason": "Unscheduled", "count": 3}, {"reason": "ImagePull", "count": 1}],
}
RING: dict[str, Any] = {"name": "train-10", "started": 2.5, "secondsLeft": None, "missing": [], "done": True}
LIST = {"kind": "GangList", "items": [TRAIN, RING]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].name}", "train-2 train-10"),
        ("{$.kind}: {@.items[0].name}!", "GangList: train-2!"),
        (r'{range .items[*]}{.name}{"\t"}{.started}{"\n"}{end}', "train-2\t7\ntrain-10\t2.5\n"),
        (
            "{range .items[*]}{range .missing[*]}{.reason},{end}{$.kind};{end}",
            "Unscheduled,ImagePull,GangList;GangList;",
        ),
        (r"{.items[0].labels.app\.kubernetes\.io/name}", "x"),
        ("{.items[0].labels['app.kubernetes.io/name']}", "x"),
        ("{.items[0]['name','started']}", "train-2 7"),
        ("{.items[-1].name} {.items[0:1].name} {.items[0,1].name}", "train-10 train-2 train-2 train-10"),
        ("{..reason}", "Unscheduled ImagePull"),
        ('{.items[?(@.name=="train-10")].started}', "2.5"),
        ("{.items[*].missing[?(@.count>1)].reason}", "Unscheduled"),
        ('{.items[?(@.started!="x")].name}', "train-2 train-10"),
        ("{.items[0].missing[1]}", '{"reason":"ImagePull","count":1}'),
        ("{.items[*].secondsLeft}|{.items[1].done}|{.items[*].nobody}|", "280 |true||"),
    ],
)
def test_a_template_prints_what_kubectl_would(template: str, text: str) -> None:
    assert Template(template).render(LIST) == text


def test_values_steer_no_terminal() -> None:
    assert Template(r'{.name}{"\n"}').render({"name": "a\x1b[2J\nb"}) == "a^[[2J b\n"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{.a", "a brace is not closed"),
        ("{range .a}", "{range} without {end}"),
        ("{end}", "{end} without {range}"),
        ("{.a b}", "cannot be read from ' b' on"),
        ("{.items[?(@.name==nobody)]}", "nobody: neither a path nor a value"),
        ("{.items[2].name}", "array index out of bounds: index 2, length 2"),
        ("{.kind[0]}", "an index into what is no list"),
    ],
)
def test_what_cannot_be_read_or_does_not_fit_is_an_error_that_says_where(template: str, words: str) -> None:
    with pytest.raises(BadPath) as wrong:
        Template(template).render(LIST)
    assert words in str(wrong.value)


@pytest.mark.parametrize("path", ["name", ".name", "{.name}", "{name}", "$.name", "['name']"])
def test_columns_and_sorting_take_a_path_with_and_without_dot_and_braces(path: str) -> None:
    assert parse_path(path).find(TRAIN, TRAIN) == ["train-2"]


def test_columns_have_what_they_find_and_else_none() -> None:
    columns = parse_output("custom-columns=WHO:.name,WHY:.missing[*].reason,LEFT:.secondsLeft,X:.nobody").columns
    assert column_cells(columns, TRAIN) == {
        "WHO": "train-2", "WHY": "Unscheduled,ImagePull", "LEFT": "280", "X": "<none>"
    }  # fmt: skip
    assert column_cells(columns, RING) == {"WHO": "train-10", "WHY": "<none>", "LEFT": "<none>", "X": "<none>"}


@pytest.mark.parametrize(
    "form", ["csv", "json=x", "jsonpath", "custom-columns", "jsonpath={.a", "custom-columns=A", "custom-columns=A:[x]"]
)
def test_a_form_that_there_is_not_is_wrong_usage(form: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_output(form)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (".name", ["train-2", "train-10"]),
        (".started", ["train-10", "train-2"]),
        (".secondsLeft", ["train-10", "train-2"]),
    ],
    ids=["texts with their numbers", "numbers", "what is not there first"],
)
def test_sorting_is_that_of_kubectl(path: str, names: list[str]) -> None:
    for given in ([TRAIN, RING], [RING, TRAIN]):
        assert [it["name"] for it in sort_documents([(it, it) for it in given], parse_sort_by(path))] == names
    with pytest.raises(CommandError, match=r"couldn't find any field with path '\.nobody'"):
        sort_documents([(TRAIN, 1)], parse_sort_by(".nobody"))


@pytest.mark.parametrize("selector", ["status.phase=Running", "metadata.name"])
def test_other_fields_are_refused_as_api_servers_do(selector: str) -> None:
    with pytest.raises(CommandError, match=r"fields are metadata\.namespace, metadata\.name"):
        has_fields(selector, "team", "train")
