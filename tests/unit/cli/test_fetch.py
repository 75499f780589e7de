"""Looking at gangs for a person: what belongs together, what Events add, which rights are missing, how it looks."""

import io
from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.source import Permissions
from jobset_gate.cli.fetch.workloads import job_policies, jobset_policies
from jobset_gate.cli.printers.explanation import explanation_text
from jobset_gate.cli.printers.listing import age
from jobset_gate.cli.printers.output import PLAIN_STYLE, TerminalStyle, style_of
from jobset_gate.explain.gang import explain_gang
from jobset_gate.kube.resources import POD_GROUPS
from jobset_gate.settings import Groups
from tests.fakes import gangs as seen_gangs
from tests.fakes.cli_runner import Terminal
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.podgroups.objects import pod_group


def with_job(**job: Any) -> dict[str, Any]:
    return {"spec": {"replicatedJobs": [{"name": "w", "template": {"spec": job}}]}}


@pytest.mark.parametrize(
    ("codes", "actions"),
    [
        ({"operator": "In", "values": [1, 124]}, ("Ignore",)),
        ({"operator": "In", "values": [1]}, ("FailJob",)),
        ({"operator": "NotIn", "values": [1]}, ("Ignore",)),
        ({"operator": "NotIn", "values": [124]}, ("FailJob",)),
        ({"operator": "In", "values": [124], "containerName": "main"}, ("FailJob",)),
        ({"operator": "In", "values": [124], "containerName": names.BARRIER_CONTAINER}, ("Ignore",)),
    ],
)
def test_the_first_rule_that_fits_the_barriers_exit_code_counts(codes: dict[str, Any], actions: tuple[str]) -> None:
    last = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
    rules = [{"action": "Count", "onPodConditions": []}, {"action": "Ignore", "onExitCodes": codes}, last]
    assert jobset_policies(with_job(podFailurePolicy={"rules": rules}), ()).exit_actions == actions


def test_of_the_jobs_of_the_gang_each_rule_about_failures_is_kept() -> None:
    bare = jobset_policies(with_job(), ())
    assert (bare.max_restarts, bare.backoff_limits, bare.restarts_in_place) == (None, (6,), True)
    assert jobset_policies(with_job(backoffLimit=9, backoffLimitPerIndex=0), ()).backoff_limits == (0,)
    jobset = with_job(backoffLimit=0, template={"spec": {"restartPolicy": "Never"}})
    jobset["status"] = {"restarts": 5, "restartsCountTowardsMax": 2}
    jobset["spec"]["replicatedJobs"].append({"name": "other", "template": {"spec": {"backoffLimit": 9}}})
    jobset["spec"]["failurePolicy"] = {"maxRestarts": 4, "rules": [{"action": "FailJobSet"}]}
    found = jobset_policies(jobset, ("w",))
    assert (found.max_restarts, found.counted, found.rules) == (4, 2, ("FailJobSet",))
    assert (found.backoff_limits, found.restarts_in_place) == ((0,), False)


def test_of_a_job_that_is_a_gang_the_limit_of_each_index_counts_where_there_is_one() -> None:
    bare = job_policies({"spec": {}})
    assert (bare.backoff_limits, bare.per_index, bare.restarts_in_place) == ((6,), False, True)
    rules = [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [124]}}]
    spec = {"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": rules}}
    spec["template"] = {"spec": {"restartPolicy": "Never"}}
    found = job_policies({"metadata": {"labels": {names.KUEUE_QUEUE: "gpus"}}, "spec": spec})
    assert (found.backoff_limits, found.per_index, found.restarts_in_place) == ((1,), True, False)
    assert (found.exit_actions, found.queue) == (("FailIndex",), "gpus")


def test_only_a_terminal_wraps_and_is_coloured_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style_of(io.StringIO(), {"TERM": "xterm"}) == PLAIN_STYLE
    monkeypatch.setenv("COLUMNS", "60")
    assert style_of(Terminal(), {"TERM": "xterm"}) == TerminalStyle(60, colour=True)
    for environment in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
        assert style_of(Terminal(), environment) == TerminalStyle(60)
    monkeypatch.setenv("COLUMNS", "5")  # too narrow to wrap
    assert style_of(Terminal(), {}).width is None


LONG = "0/40 nodes are available: 12 Insufficient nvidia.com/gpu, 28 node(s) had untolerated taint {pool: other}."


@pytest.mark.parametrize("width", [30, 44, 80])
def test_on_a_narrow_terminal_no_line_is_wider_and_no_word_is_lost(width: int) -> None:
    it = explain_gang(seen_gangs.gang(seen_gangs.pod(0), seen_gangs.waiting_pod(1, detail=LONG)), seen_gangs.T0 + 9)
    it = msgspec.structs.replace(it, unknown=("cannot list events in namespace default: not known",))
    text, plain = (explanation_text(it, TerminalStyle(width)), explanation_text(it, PLAIN_STYLE))
    assert text.split() == plain.split()
    # A command is there to be copied: it stays in one piece.
    assert all(len(line) <= width for line in text.splitlines() if "kubectl" not in line)
    assert any("kubectl describe pod train-workers-0-1 -n default" in line for line in text.splitlines())


async def test_an_object_that_cannot_be_decoded_is_named_and_hides_no_other() -> None:
    api, permissions = Api(), Permissions()
    for each in (pod_group("good"), pod_group("odd", notes={"a": 1})):
        api.put(POD_GROUPS[names.PLUGINS_GROUP], each)
    source = PodGroupSource(MemoryClient(api).client, None, permissions, Groups())
    await source.load()
    assert [it.key.name for it in await source.statuses()] == ["good"]
    (missing,) = permissions.missing
    assert missing.startswith("not readable: ")


def test_ages_are_those_of_kubectl() -> None:
    seconds = (-1, 119.9, 120, 599, 3599, 3 * 3600, 4 * 3600 + 120, 30 * 3600, 50 * 3600, 30 * 86400)
    assert " ".join(map(age, seconds)) == "0s 119s 2m 9m59s 59m 3h 4h2m 30h 2d2h 30d"
