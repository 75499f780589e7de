"""docs/pod-groups.md tells every way, every setting with its default, and every reason for which a group waits."""

import json
import re
from typing import Final

import pytest
import yaml

from controllers.podgroups.metrics import REASONS
from jobset_gate import names
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from tests.chart.helm import defaults
from tests.repo.files import ROOT

PAGE: Final = (ROOT / "docs" / "pod-groups.md").read_text()


def section(title: str) -> str:
    """The text below one of the headings."""
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found, title
    return rest.partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_every_reason_is_there_with_what_to_do() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", section("Why a group waits"), re.MULTILINE)
    assert {reason for reason, _, _ in rows} == set(REASONS)
    assert all(len(meaning) > 15 and len(remedy) > 5 for _, meaning, remedy in rows)


@pytest.mark.parametrize("way", list(Format))
def test_every_format_is_there_with_the_key_of_its_pods(way: Format) -> None:
    (row,) = re.findall(rf"^\| `{way.value}` \|.*$", section("When to use which way"), re.MULTILINE)
    _, key = formats.NAME_KEYS[way]
    assert f"`{key}`" in row


def test_every_setting_is_there_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section("Settings"), re.MULTILINE))
    program = Groups().model_dump(by_alias=True, mode="json")
    assert rows.keys() == program.keys()
    for name, default in rows.items():
        if name != "ways":
            text = yaml.safe_load(default.strip("`"))
            assert json.dumps(text) == json.dumps(_number(program[name])), name


def test_the_values_of_the_chart_have_the_same_defaults() -> None:
    assert defaults()["groups"] == {
        key: _number(one) for key, one in Groups().model_dump(by_alias=True, mode="json").items()
    }


def test_what_a_stock_scheduler_cannot_promise_is_there() -> None:
    text = section("What the stock scheduler cannot promise")
    for what in (
        "Pods bind one by one",
        "Ordinary pods may come in between",
        "A lost node",
        "Preemption",
        "autoscalers",
    ):
        assert what in text


def test_the_deviation_of_non_strict_is_there() -> None:
    assert "**NonStrict deviates from its design.**" in section("The limit and the way back")


def test_how_to_ungate_everything_is_there() -> None:
    assert "kubectl jobset-gate groups ungate --all" in section("Uninstalling and letting go")
    assert names.KOORDINATOR_TIMED_OUT in section("The limit and the way back")


def test_every_link_within_the_page_leads_somewhere() -> None:
    titles = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= titles


def _number(value: object) -> object:
    """300.0 is written as 300."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
