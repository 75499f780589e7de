"""docs/rbac.md says which rights the chart gives, to which account and why: no more and no less than it renders."""

import re
from functools import cache
from typing import Any

import pytest
import yaml

from jobset_gate.podgroups.model import Format
from tests.flow.installed import CHART, RELEASE, rendered
from tests.flow.rights import Right, granted
from tests.repo.files import ROOT

DOCUMENT = (ROOT / "docs" / "rbac.md").read_text()
OWN = "somewhere"
RENDERINGS = {
    "as it comes": (),
    "cert-manager": ("webhook.certificates.mode=certManager",),
    "a certificate that is brought": ("webhook.certificates.mode=secret", "webhook.certificates.secretName=mine"),
    "the field is taken out again": ("crds.keep=false",),
    "the annotation form alone": ("crds.extendJobSet=false",),
    "JobSets alone": ("gangs.sources={jobset}", "groups.enabled=false"),
    "start groups": ("gangs.sources={jobset,startgroup}", "groups.enabled=false"),
    "start groups and cert-manager": (
        "gangs.sources={jobset,startgroup}",
        "webhook.certificates.mode=certManager",
    ),
    "LeaderWorkerSets": ("gangs.sources={jobset,lws}", "groups.enabled=false"),
    "LeaderWorkerSets and cert-manager": ("gangs.sources={jobset,lws}", "webhook.certificates.mode=certManager"),
    "every source": ("gangs.sources={jobset,job,lws,startgroup}",),
    "no patches": ("controller.patchConcurrency=0",),
    "one controller": ("controller.replicaCount=1", "controller.leaderElection.enabled=false"),
    "no test": ("tests.enabled=false",),
    "no groups": ("groups.enabled=false",),
    "nobody looks for room": ("groups.capacityCheck=Off",),
    "kinds are brought by others": ("crds.podGroups=false",),
    "handed over": ("groups.native=On",),
    "the status page": ("statusPage.enabled=true",),
    **{f"only {way}": (f"groups.ways={{{way}}}",) for way in Format},
}


@cache
def written() -> dict[str, list[list[str]]]:
    """The rows of each account's table, cell by cell."""
    found: dict[str, list[list[str]]] = {}
    for section in DOCUMENT.split("\n## ")[1:]:
        account = section.partition("\n")[0].strip("`").replace("<name>", RELEASE)
        rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
        found[account] = [[cell.strip().replace("\\<name>", RELEASE) for cell in row] for row in rows[1:]]
    return found


def said(account: str, values: dict[str, Any]) -> set[Right]:
    """What the document says that an account has with these values."""
    rights: set[Right] = set()
    for where, group, resources, its_names, verbs, when, reason in written().get(account, []):
        assert reason, f"{account}: no reason for {verbs} on {resources}"
        namespace = {"all": "", "own": OWN}.get(where, where)
        if holds(when, values):
            for resource in words(resources):
                for verb in words(verbs):
                    rights |= {Right(group, resource, verb, name, namespace) for name in words(its_names) or [""]}
    return rights


def words(cell: str) -> list[str]:
    return [word for word in re.split(r",\s*", cell) if word]


def holds(when: str, values: dict[str, Any]) -> bool:
    """`a.b=c`, `a.b!=c`, `list=c or d`, several with commas: all of them; "" always does."""
    return all(_is(one, values) for one in words(when))


def _is(condition: str, values: dict[str, Any]) -> bool:
    path, negated, wanted = re.fullmatch(r"([\w.]+)(!?)=([\w -]+)", condition).groups()  # type: ignore[union-attr]
    value: Any = values
    for key in path.split("."):
        value = value[key]
    there = {str(one).lower() for one in (value if isinstance(value, list) else [value])}
    return bool(there & set(wanted.lower().split(" or "))) != bool(negated)


def effective(settings: tuple[str, ...]) -> dict[str, Any]:
    """The chart's values with these on top."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    for setting in settings:
        path, _, value = setting.partition("=")
        *parents, last = path.split(".")
        place = values
        for key in parents:
            place = place[key]
        place[last] = value if value in ("On", "Off") else _read(value)
    return values


def _read(value: str) -> Any:
    """As Helm reads it: {a,b} is a list."""
    return value[1:-1].split(",") if value.startswith("{") else yaml.safe_load(value)


@pytest.mark.parametrize("rendering", RENDERINGS)
async def test_the_document_says_what_the_chart_gives(rendering: str) -> None:
    manifests = await rendered(OWN, *RENDERINGS[rendering])
    assert [one["metadata"]["name"] for one in manifests if one["kind"].endswith("Role") and too_broad(one)] == []
    accounts = {one["metadata"]["name"] for one in manifests if one["kind"] == "ServiceAccount"}
    assert accounts <= written().keys()
    for account in written():
        gives = granted(manifests, account, OWN)
        # The rights of `helm test` lie in the namespace where it tries.
        assert said(account, effective(RENDERINGS[rendering])) == gives, account


def too_broad(role: dict[str, Any]) -> bool:
    """For everything, or for whatever others add to it."""
    return "*" in str(role["rules"]) or bool(role.get("aggregationRule"))


async def test_without_rbac_of_the_chart_there_is_none() -> None:
    kinds = {one["kind"] for one in await rendered(OWN, "rbac.create=false", "tests.enabled=false")}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
