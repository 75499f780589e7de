"""docs/rbac.md says which rights the chart gives, to which account and why: no more and no less than it renders."""

import re
from functools import cache
from typing import Any

import pytest

from jobset_gate.podgroups.model import Format
from tests.chart.helm import RELEASE, Helm, Json, at, defaults, merged
from tests.flow.rights import Right, granted
from tests.repo.files import ROOT
from tests.tools import catalog

DOCUMENT = (ROOT / "docs" / "rbac.md").read_text()
OWN = "somewhere"
CERT_MANAGER = at("webhook.certificates.mode", "certManager")
RENDERINGS: dict[str, Json] = {
    "as it comes": {},
    "cert-manager": CERT_MANAGER,
    "a certificate that is brought": at("webhook.certificates", {"mode": "secret", "secretName": "mine"}),
    "the field is taken out again": at("crds.keep", False),
    "the annotation form alone": at("crds.extendJobSet", False),
    "JobSets alone": {"gangs": {"sources": ["jobset"]}, "groups": {"enabled": False}},
    "start groups": {"gangs": {"sources": ["jobset", "startgroup"]}, "groups": {"enabled": False}},
    "start groups and cert-manager": merged(at("gangs.sources", ["jobset", "startgroup"]), CERT_MANAGER),
    "LeaderWorkerSets": {"gangs": {"sources": ["jobset", "lws"]}, "groups": {"enabled": False}},
    "LeaderWorkerSets and cert-manager": merged(at("gangs.sources", ["jobset", "lws"]), CERT_MANAGER),
    "every source": at("gangs.sources", ["jobset", "job", "lws", "startgroup"]),
    "no patches": at("controller.patchConcurrency", 0),
    "one controller": at("controller", {"replicaCount": 1, "leaderElection": {"enabled": False}}),
    "no test": at("tests.enabled", False),
    "no groups": at("groups.enabled", False),
    "nobody looks for room": at("groups.capacityCheck", "Off"),
    "kinds are brought by others": at("crds.podGroups", False),
    "handed over": at("groups.native", "On"),
    "the status page": at("statusPage.enabled", True),
    **{f"only {way}": at("groups.ways", [way.value]) for way in Format},
}


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(4, catalog.helm(4), tmp_path_factory.mktemp("helm"))


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


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_the_document_says_what_the_chart_gives(helm: Helm, rendering: str) -> None:
    manifests = list(helm.render(RENDERINGS[rendering], namespace=OWN).all)
    assert [one["metadata"]["name"] for one in manifests if one["kind"].endswith("Role") and too_broad(one)] == []
    accounts = {one["metadata"]["name"] for one in manifests if one["kind"] == "ServiceAccount"}
    assert accounts <= written().keys()
    values = merged(defaults(), RENDERINGS[rendering])
    for account in written():
        # The rights of `helm test` lie in the namespace where it tries.
        assert said(account, values) == granted(manifests, account, OWN), account


def too_broad(role: dict[str, Any]) -> bool:
    """For everything, or for whatever others add to it."""
    return "*" in str(role["rules"]) or bool(role.get("aggregationRule"))


def test_without_rbac_of_the_chart_there_is_none(helm: Helm) -> None:
    kinds = {one["kind"] for one in helm.render({"rbac": {"create": False}, "tests": {"enabled": False}}).all}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
