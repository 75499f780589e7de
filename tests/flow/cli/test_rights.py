"""What a user with few rights reads: the right that is missing by its name, and all that is known without it."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import EVENTS, JOBSETS
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet, store_every_reason, store_half
from tests.fakes.stored_start_group import StoredStartGroup
from tests.flow.cli.conftest import LimitedUser

Json = dict[str, Any]
TRAIN = f"jobsets.{names.JOBSET_GROUP} in NS"


def may(*verbs: str, kinds: tuple[str, ...] = ("jobsets",), group: str = names.JOBSET_GROUP) -> Json:
    return {"apiGroups": [group], "resources": [*kinds], "verbs": [*verbs]}


PODS = may("list", kinds=("pods",), group="")
JOBS = may("list", kinds=("jobs",), group="batch")
MAPS = may("get", "list", kinds=("configmaps",), group="")
SAY = may("create", kinds=("events",), group="")
UNSEEN = ("pods", "jobs.batch", "configmaps")
RING_SEEN = ("why startgroup/ring", "get gangs --source=startgroup", "timeline startgroup/ring")
USERS: dict[str, tuple[list[Json], dict[str, str | list[str]]]] = {
    "nothing": (
        [],
        {
            "why train": f"error: cannot get {TRAIN}",
            "wait train": f"cannot get {TRAIN}",
            "get jobsets": f"error: cannot list {TRAIN}",
            "get jobsets -w": f"error: cannot list {TRAIN}",
        },
    ),
    "to get JobSets": (
        [may("get")],
        {
            "why train": [
                "Waiting: the controller said: 1/6 pods started; missing: 5 Unscheduled",
                "Not known: cannot list pods in NS: how many have started is not known",
            ],
            "timeline train": "error: cannot list pods in NS",
            "wait train": f"cannot list {TRAIN}",
        },
    ),
    "to list JobSets": (
        [may("get", "list")],
        {
            "wait train": f"cannot watch {TRAIN}",
            "get jobsets": [
                "?/6",
                *(f"warning: cannot list {it} in NS: " for it in ("pods", "jobs.batch", "configmaps")),
            ],
        },
    ),
    "to see pods, too": (
        [may("get"), PODS, JOBS],
        {
            "why train": [
                "Waiting: 1/6 pods started",
                "  1 pod: NotCreated: the Job controller has not created it yet",  # it was the quota
                "Not known: cannot list events in NS: what a quota, an autoscaler or a kubelet said",
                "Not known: cannot get configmaps in NS: ",
                "Whether a controller runs is not known: no right to read the Lease",
            ],
            "timeline train": [
                "1/6 pods started",
                "warning: cannot list events in NS: when images were pulled is not known",
                "warning: cannot get configmaps in NS: what was decided is known from",
            ],
        },
    ),
    "to see ConfigMaps": ([MAPS], dict.fromkeys((*RING_SEEN, "get gangs"), "cannot list pods in NS")),
    "to write Events": (
        [may("get", "list", "watch"), SAY, MAPS, PODS],
        {
            "release train --yes": f"cannot patch {TRAIN}",
            "release startgroup/ring --yes": "cannot patch configmaps in NS: nothing was changed",
        },
    ),
    "to write JobSets": (
        [may("get", "patch")],
        {"bypass train --yes": "cannot create events in NS: opening a gate by hand is audited by one"},
    ),
    "to write both": ([may("get", "patch"), SAY], {"release train --yes": f"cannot list {TRAIN}"}),
}
"""What each may do, and what its commands end with: the right that is missing, or all that is shown without it."""


@pytest.mark.parametrize("rights", USERS)
async def test_the_right_that_is_missing_is_named_and_the_rest_is_shown(
    stored: StoredJobSet, cli: CliShell, limited: LimitedUser, rights: str
) -> None:
    await store_every_reason(stored)
    await stored.condition(names.REASON_WAITING, "1/6 pods started; missing: 5 Unscheduled")
    ring = StoredStartGroup(stored.client, stored.namespace)
    await store_half(ring)
    rules, expected = USERS[rights]
    user = cli.user(await limited(rules))
    for words, texts in expected.items():
        ran = await user(*words.split())
        said = (ran.out + ran.err).replace(f"namespace {stored.namespace}", "NS")
        assert len(set(ran.err.splitlines())) == len(ran.err.splitlines()), "each is named once"
        assert (ran.code, bool(ran.out)) == ((1, False) if isinstance(texts, str) else (0, True)), (words, said)
        assert [it for it in ([texts] if isinstance(texts, str) else texts) if it not in said] == [], words
    made = await stored.client.get(JOBSETS, "train", stored.namespace)
    assert names.BYPASS not in made["metadata"]["annotations"]
    assert "verdict" not in (await ring.stored_config_map())["data"]
    reasons = {it["reason"] for it in (await stored.client.list(EVENTS, stored.namespace))["items"]}
    assert reasons == {"FailedCreate"}
