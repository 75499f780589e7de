"""kubectl's manners: impersonation, selectors, sorting, columns, templates, short words, versions, completion."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import DEPLOYMENTS, EVENTS, JOBSETS, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import CliShell, RunCli
from tests.fakes.doctor_shell import OURS, deployment
from tests.fakes.stored_gang import StoredJobSet
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.flow.cli.conftest import LimitedUser
from tests.flow.cli.test_schemas import check
from tests.plane.planes import Plane, Real

JOBSETS_ONLY: list[dict[str, Any]] = [
    {"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": ["get", "list"]}
]


async def label(client: Client, resource: Resource, name: str, namespace: str, value: str) -> None:
    body = {"metadata": {"labels": {"team": value}}}
    await client.patch(resource, name, namespace, body=body, patch=PatchType.MERGE)


async def test_a_user_and_groups_are_impersonated(stored: StoredJobSet, cli: CliShell, limited: LimitedUser) -> None:
    await stored.jobset()
    await limited(JOBSETS_ONLY)
    account = f"system:serviceaccount:{stored.namespace}:user"
    ran = await cli("get", "jobsets", "--no-headers", "--as", account)
    assert (ran.code, ran.out.split()[:3]) == (0, ["train", "Waiting", "?/2"])
    assert f"warning: cannot list pods in namespace {stored.namespace}" in ran.err
    ran = await cli("get", "jobsets", "--as", "ada", "--as-uid", "7")
    assert (ran.code, 'User "ada" cannot list resource "jobsets"' in ran.err) == (1, True)
    whole = ("--as", "ada", "--as-group", "team", "--as-group", "system:masters")
    ran = await cli("get", "jobsets", "--no-headers", *whole)
    assert (ran.code, ran.out.split()[:3]) == (0, ["train", "Waiting", "0/2"])
    why = (await cli("why", "train", *whole)).out
    assert f"--as ada --as-group team --as-group system:masters --kubeconfig {cli.kubeconfig}" in why
    assert (await cli("bypass", "train", "--yes", *whole)).code == 0
    found = await stored.client.list(EVENTS, stored.namespace)
    assert any(it["message"].startswith("ada has opened the gate for good") for it in found["items"])


async def test_a_token_and_a_server_of_the_command_line_count(
    stored: StoredJobSet, cli: CliShell, real_plane: Real, limited: LimitedUser
) -> None:
    """The first user of the kubeconfig has a certificate, which API servers believe before a token."""
    await stored.jobset()
    config = await limited(JOBSETS_ONLY)
    token = (await real_plane.kubectl("create", "token", "user", "-n", stored.namespace)).stdout.strip()
    nobody = cli.user(config)
    ran = await nobody("get", "jobsets", "--no-headers", "--token", token)
    assert (ran.code, ran.out.split()[0]) == (0, "train")
    ran = await nobody("get", "jobsets", "--token", "wrong")
    assert (ran.code, "takes these credentials for nobody's" in ran.err, "LOGIN failed" in ran.err) == (1, True, True)
    for option in ("--context", "--cluster", "--user"):
        ran = await nobody("get", "jobsets", option, "moon")
        assert (ran.code, f"there is no {option.removeprefix('--')} moon; there are " in ran.err) == (1, True)


@pytest.fixture
async def labelled(stored: StoredJobSet, groups: StoredPodGroups) -> StoredPodGroups:
    """JobSet `train` of team a, `star` whose pods say team b, `ring` whose PodGroup says team c, and `bare`."""
    await stored.jobset()
    await groups.group("ring", 2)
    await groups.group("bare", 2)
    await groups.held("star", "s-0", "s-1", way=Format.ALIBABA, minimum=2)
    for resource, name, value in (
        (JOBSETS, "train", "a"), (PODS, "s-1", "b"), (POD_GROUPS[names.PLUGINS_GROUP], "ring", "c")
    ):  # fmt: skip
        await label(groups.client, resource, name, groups.namespace, value)
    return groups


SELECTED = {
    "-l=team=a": ["train"],
    "--selector=team==b": ["star"],
    "-l=team in (a,c)": ["ring", "train"],
    "-l=team,team!=a": ["ring", "star"],
    "-l=!team": ["bare", "star"],
    "-l=team=moon": [],
    "--field-selector=metadata.name=ring": ["ring"],
    "--field-selector=metadata.name!=ring,metadata.namespace!=moon": ["bare", "star", "train"],
}


async def test_a_selector_picks_gangs_by_their_labels_or_fields(labelled: StoredPodGroups, cli: CliShell) -> None:
    """As the API server understands labels; a group without a PodGroup has those of any of its pods."""
    for selector, found in SELECTED.items():
        ran = await cli("get", "gangs", selector, "--no-headers", "--sort-by=.name", "-o", "custom-columns=NAME:.name")
        assert (ran.code, ran.out.split()) == (0, found), selector
        groups = await cli("get", "podgroups", selector, "-o", "name")
        assert sorted(groups.out.split()) == [f"group/{it}" for it in found if it != "train"], selector


async def test_a_watch_follows_the_labels(labelled: StoredPodGroups, plane: Plane) -> None:
    words = ("get", "gangs", "-w", "-l", "team=a", "-o", "name", "-n", labelled.namespace)
    async with started(plane.kubeconfig, *words) as watch:
        assert (await watch.line()).strip() == "jobset.jobset.x-k8s.io/train"
        await label(labelled.client, POD_GROUPS[names.PLUGINS_GROUP], "bare", labelled.namespace, "a")
        assert (await watch.line()).strip() == "group/bare"
        assert await watch.interrupted() == 130


async def test_a_selector_that_is_none_ends_it_also_while_watching(stored: StoredJobSet, cli: CliShell) -> None:
    for more in ((), ("-w",)):
        ran = await cli("get", "gangs", "-l", "a in b", *more)
        assert (ran.code, ran.out, "unable to parse requirement" in ran.err) == (1, "", True)
    ran = await cli("get", "gangs", "train", "-l", "a=b")
    assert (ran.code, ran.err) == (2, "error: give names or a selector, not both\n")


async def test_kinds_have_the_names_that_kubectl_would_give_them(labelled: StoredPodGroups, cli: CliShell) -> None:
    for kind, more in (
        ("gangs", ["gang"]),
        ("jobsets", ["jobset", "js"]),
        ("groups", ["group", "podgroup", "podgroups"]),
    ):
        wanted = await cli("get", kind, "-o", "name")
        assert wanted.out
        assert [(await cli("get", it, "-o", "name")).out for it in more] == [wanted.out] * len(more)
    assert (await cli("podgroups", "ungate", "--all", "--dry-run=client")).code == 0


async def test_versions_are_those_of_the_program_the_server_and_its_controllers(
    stored: StoredJobSet, cli: CliShell, limited: LimitedUser
) -> None:
    made = deployment("gate", "x", labels=OURS | {"app.kubernetes.io/version": "1.2.3"})
    await stored.client.create(DEPLOYMENTS, made, stored.namespace)
    everywhere = CliShell(cli.run, cli.kubeconfig)
    found = check("version", (await everywhere("version", "-o", "json")).out)
    assert {"namespace": stored.namespace, "name": "gate", "version": "1.2.3"} in found["controllers"]
    assert re.match(r"v1\.\d+", found["serverVersion"])
    ran = await everywhere("version")
    assert f"Controller: 1.2.3 ({stored.namespace}/gate)" in ran.out.splitlines()
    ran = await everywhere.user(await limited([]))("version")
    assert (ran.code, ran.out.splitlines()[1]) == (0, f"Server: {found['serverVersion']}")
    assert "warning: cannot list deployments.apps in all namespaces: the controller's version is not known" in ran.err


def test_without_a_cluster_the_programs_own_version_is_printed_all_the_same(run: RunCli) -> None:
    ran = run("version", "--server", "http://127.0.0.1:1")
    assert (ran.code, ran.out.startswith("Client: ")) == (1, True)
    assert "error: no API server is reached" in ran.err
    ran = run("version", "--client", "-o", "json")
    assert check("version", ran.out)["serverVersion"] is None


async def test_kubectl_completes_the_plugin(real_plane: Real, tmp_path: Path) -> None:
    """By its own protocol: the real kubectl runs the script that the wheel and the archive of the plugin have."""
    for name, function in (("kubectl-jobset_gate", "main"), ("kubectl_complete-jobset_gate", "complete")):
        code = f"import sys; from jobset_gate.cli.main import {function}; sys.argv[0] = '{name}'; {function}()"
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
        program.chmod(0o755)

    async def completed(*words: str) -> list[str]:
        ran = await asyncio.create_subprocess_exec(
            real_plane.kubectl.program, "__complete", "jobset-gate", *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"},
        )  # fmt: skip
        return (await ran.communicate())[0].decode().splitlines()

    assert await completed("get", "ga") == [
        "gangs\tShow what waits in start barriers and in pod groups, all in one table.",
        ":4",
    ]
    assert [line.split("\t")[0] for line in await completed("wa")] == ["wait", "watch", ":4"]
    assert await completed("release", "--dry-run", "s") == ["server", ":4"]
