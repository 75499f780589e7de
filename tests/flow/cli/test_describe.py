"""`describe`: everything known of a gang on one page, for people."""

import re

from jobset_gate import names
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet, store_every_reason
from tests.fakes.stored_pod_groups import StoredPodGroups


def facts(text: str) -> dict[str, str]:
    """The first paragraph."""
    lines = text.partition("\n\n")[0].splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_a_gang_is_shown_with_its_jobs_its_reasons_and_its_events(stored: StoredJobSet, cli: CliShell) -> None:
    await store_every_reason(stored)
    await stored.config_map()
    await stored.condition(names.REASON_WAITING, "1/6 pods started")
    await stored.event("JobSet", "train", "AllPodsStarted", "said before")
    ran = await cli("describe", "train")
    found = facts(ran.out)
    assert (ran.code, found["Name"], found["Namespace"], found["UID"]) == (0, "train", stored.namespace, stored.uid)
    assert re.fullmatch(r"[-0-9]{10}T[:0-9]{8}Z \([0-9]+s ago\)", found["Created"])
    assert (found["Timeout"], found["On timeout"], found["Targets"]) == ("5m", "Fail", "workers")
    assert found["Generation"] == "restart attempt 0, epoch 0"
    assert found["Condition"] == "GroupStarted=False WaitingForPods: 1/6 pods started"
    assert found["ConfigMap"] == "train-group-scheduling: no verdict"
    paragraphs = ran.out.split("\n\n")
    assert [line.split() for line in paragraphs[1].splitlines()] == [
        ["JOB", "STARTED", "STATE"],
        ["train-workers-0", "1/6", "active"],
    ]
    assert paragraphs[2].startswith(f"JobSet {stored.namespace}/train: Waiting: 1/6 pods started")
    assert "Unscheduled: 0/4 nodes are available" in ran.out
    assert re.search(r"\nEvents:\n  [-0-9]{10}T[:0-9]{8}Z  AllPodsStarted: said before\n$", ran.out)


async def test_a_group_is_shown_with_its_members(groups: StoredPodGroups, cli: CliShell) -> None:
    await groups.fill()
    ran = await cli("describe", "gang/b-small", "gang/e-fine")
    small, fine = (facts(text) for text in re.split(r"\n\n(?=Name: )", ran.out))
    assert (small["Design"], small["Minimum"], small["Phase"]) == ("kep-24", "3", "Pending")
    assert small["PodGroup"] == "incubator.scheduling.k8s.io/b-small"
    assert (small["Members"], small["Opened"]) == ("1 exist, 0 bound, 0 running", "no")
    assert ["b-0", "<none>", "Pending", "yes"] in [line.split() for line in ran.out.splitlines()]
    assert (fine["Phase"], fine["PodGroup"]) == ("Running", "none")
    assert fine["Opened"].endswith("generation 1 (Open)")
    assert ["e-0", "far", "Running", "no"] in [line.split() for line in ran.out.splitlines()]
    by_pod = (await cli("describe", "pod/b-0")).out
    assert facts(by_pod)["Name"] == "b-small"
    assert "pod b-0: Held: until the whole group is opened" in by_pod
    assert f"--kubeconfig {cli.kubeconfig}" in by_pod  # the commands reach the same cluster
