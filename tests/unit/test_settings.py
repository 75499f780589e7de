"""What an operator may configure, and the errors of bad values."""

from typing import Any

import msgspec
import pytest

from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import BadSettings, Barrier, Groups, Native, Settings, load


def test_nothing_given_is_the_defaults() -> None:
    assert load(None) == load({}) == Settings()


GIVEN = {
    "barrier": {
        "image": "registry.local/busybox:1",
        "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "8Mi"}},
        "runAsUser": None,
        "runAsGroup": None,
        "graceSeconds": 5,
        "maxWaitSeconds": 7200,
        "pollSeconds": 0.5,
        "streamUrl": "http://gate.system.svc:8082",
    },
    "groups": {
        "enabled": False,
        "ways": ["kep-24", "alibaba"],
        "schedulerNames": ["default-scheduler", "second.example.com"],
        "capacityCheck": "Probe",
        "starvationSeconds": 0,
        "waitSeconds": 60,
        "acrossNamespaces": True,
        "native": "On",
        "gateConcurrency": 8,
    },
}


def test_what_is_given_is_taken_in_the_words_of_the_charts_values() -> None:
    made = msgspec.json.decode(msgspec.json.encode(load(GIVEN)))
    assert {section: made[section] for section in GIVEN} == GIVEN


def test_groups_are_as_the_contract_says_where_nothing_is_given() -> None:
    made = load({"groups": {}}).groups
    assert made == load(None).groups == Groups()
    assert (made.enabled, made.ways, made.scheduler_names) == (True, tuple(Format), ("default-scheduler",))
    assert (made.capacity_check, made.native, made.across_namespaces) == (CapacityCheck.FIT, Native.OFF, False)
    assert (made.wait_seconds, made.starvation_seconds, made.gate_concurrency) == (600, 300, 32)


def test_on_and_off_need_no_quotes() -> None:
    """Helm reads them as booleans."""
    made = load({"groups": {"native": True, "capacityCheck": False}}).groups
    assert (made.native, made.capacity_check) == (Native.ON, CapacityCheck.OFF)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"barier": {}}, "barier: {}: unknown key"),
        ({"barrier": {"graceSeconds": -1}}, "barrier.graceSeconds: -1: expected `int` >= 0"),
        ({"barrier": {"image": "a b"}}, 'barrier.image: "a b": expected `str` matching regex'),
        ({"barrier": {"runAsUser": 0}}, "barrier.runAsUser: 0: expected `int` >= 1"),
        ({"barrier": {"resources": {"claims": []}}}, "barrier.resources.claims: []: unknown key"),
        ({"barrier": 3}, "barrier: 3: expected `object`, got `int`"),
        (
            {"gangs": {"sources": ["jobset", "pod"]}},
            'gangs.sources[1]: "pod": must be one of jobset, job, lws, startgroup',
        ),
        ({"gangs": {"sources": ["job"]}}, 'gangs: {"sources":["job"]}: sources must contain jobset'),
        (
            {"barrier": {"resources": {"limits": {"cpu": []}}}},
            "barrier.resources.limits.cpu: []: expected `int | float",
        ),
        ({"gangs": {"podFailurePolicy": "No"}}, 'gangs.podFailurePolicy: "No": must be Fail or Ignore'),
        ({"groups": {"enabled": "yes"}}, 'groups.enabled: "yes": expected `bool`, got `str`'),
        (
            {"groups": {"ways": ["kep-24", "volcano"]}},
            'groups.ways[1]: "volcano": must be koordinator-annotations, koordinator-podgroup',
        ),
        ({"groups": {"schedulerNames": []}}, "groups.schedulerNames: []: expected `array` of length >= 1"),
        ({"groups": {"schedulerNames": ["it's"]}}, 'groups.schedulerNames[0]: "it\'s": expected `str` matching regex'),
        ({"groups": {"capacityCheck": "fit"}}, 'groups.capacityCheck: "fit": must be Fit, Probe or Off'),
        ({"groups": {"capacityCheck": True}}, 'groups.capacityCheck: "On": must be Fit, Probe or Off'),
        ({"groups": {"waitSeconds": 2**31}}, "groups.waitSeconds: 2147483648: expected `int` <= 2147483647"),
        ([], "settings: []: expected `object`, got `array`"),
    ],
)
def test_a_bad_value_is_reported_with_its_path(values: Any, line: str) -> None:
    with pytest.raises(BadSettings) as problem:
        load(values)
    assert str(problem.value).startswith(line)


@pytest.mark.parametrize(
    "url",
    ["http://gate/", "http://gate.system.svc:8082", "http://10.0.0.1:65535/some/path/", "http://[fd00::1]:8082", None],
)
def test_a_url_that_a_barrier_can_ask_is_taken(url: str | None) -> None:
    assert load({"barrier": {"streamUrl": url}}).barrier.stream_url == url


@pytest.mark.parametrize(
    "url",
    [
        "gate:8082",
        "https://gate",
        "http://gate:0",
        "http://gate:65536",
        "http://user@gate",
        "http://gate/$(HOME)",
        "http://gate\n",
    ],
)
def test_a_url_that_no_barrier_could_ask_is_refused(url: str) -> None:
    with pytest.raises(BadSettings, match=r"^barrier\.streamUrl: .*must be http://host\[:port\]\[/path\]$"):
        load({"barrier": {"streamUrl": url}})


def test_all_bad_values_are_reported_at_once() -> None:
    with pytest.raises(BadSettings) as problem:
        load({"barrier": {"graceSeconds": "soon", "pollSeconds": -1, "maxWaitSeconds": True}})
    assert len(str(problem.value).splitlines()) == 3


def test_a_barrier_gives_up_later_than_the_slowest_news_of_a_release_arrives() -> None:
    """A6: within two kubelet sync periods, a minute each, by the ConfigMap alone; 87 s were measured."""
    assert Barrier().grace_seconds >= 120
