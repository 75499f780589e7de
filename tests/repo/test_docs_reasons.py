"""docs/troubleshooting.md explains every reason and state that users see of gangs, pods and groups."""

import re

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import PendingReason
from jobset_gate.explain.model import GangState
from tests.repo.files import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
GROUPS = (ROOT / "docs" / "pod-groups.md").read_text()
ROW = re.compile(r"^\| `(\w+)`(?: \*)? \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def section(title: str) -> str:
    """The text below one of the smaller headings."""
    _, found, rest = PAGE.partition(f"\n### {title}\n")
    assert found, title
    return re.split(r"\n##+ ", rest, maxsplit=1)[0]


def rows(text: str) -> dict[str, tuple[str, str]]:
    return {word: (meaning.strip(), remedy.strip()) for word, meaning, remedy in ROW.findall(text)}


def reasons() -> set[str]:
    return {value for key, value in vars(names).items() if key.startswith("REASON_")}


@pytest.mark.parametrize("word", sorted(reasons()))
def test_every_reason_stands_there(word: str) -> None:
    assert f"`{word}`" in PAGE.partition("\n## Reasons and states\n")[2]
    assert word in rows(PAGE) or re.search(rf"^\| `{word}` \|", GROUPS, re.MULTILINE), "named, but not explained"


def test_every_class_of_a_missing_pod_is_explained_and_no_other() -> None:
    assert rows(section("Why a pod is missing")).keys() == {it.value for it in PendingReason}


def test_every_state_of_a_gang_is_explained() -> None:
    assert {it.value for it in GangState} - rows(section("What is true of a gang")).keys() == set()


def test_no_word_is_explained_that_nobody_says() -> None:
    said = reasons() | {it.value for it in PendingReason} | {it.value for it in GangState}
    explained = rows(PAGE.partition("\n## Reasons and states\n")[2])
    assert explained.keys() - said == set()


def test_each_row_says_what_it_means_and_what_to_do() -> None:
    thin = [word for word, (meaning, remedy) in rows(PAGE).items() if len(meaning) < 15 or len(remedy) < 5]
    assert thin == []
