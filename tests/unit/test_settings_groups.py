"""The settings of pod groups: `groups.*`."""

from typing import Any

import pytest

from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import BadSettings, Groups, Native, load


def test_nothing_given_is_what_the_contract_says() -> None:
    made = load({"groups": {}}).groups
    assert made == load(None).groups == Groups()
    assert (made.enabled, made.ways, made.scheduler_names) == (True, tuple(Format), ("default-scheduler",))
    assert (made.capacity_check, made.native, made.across_namespaces) == (CapacityCheck.FIT, Native.OFF, False)
    assert (made.wait_seconds, made.starvation_seconds, made.gate_concurrency) == (600, 300, 32)


def test_keys_are_camel_case_and_words_those_of_the_charts_values() -> None:
    values = {
        "enabled": False,
        "ways": ["kep-24", "alibaba"],
        "schedulerNames": ["default-scheduler", "second.example.com"],
        "capacityCheck": "Probe",
        "starvationSeconds": 0,
        "waitSeconds": 60,
        "acrossNamespaces": True,
        "native": "On",
        "gateConcurrency": 8,
    }
    made = load({"groups": values}).groups
    assert (made.enabled, made.ways) == (False, (Format.KEP_24, Format.ALIBABA))
    assert made.scheduler_names == ("default-scheduler", "second.example.com")
    assert (made.capacity_check, made.native, made.across_namespaces) == (CapacityCheck.PROBE, Native.ON, True)
    assert (made.starvation_seconds, made.wait_seconds, made.gate_concurrency) == (0, 60, 8)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"enabled": "yes"}, 'groups.enabled: "yes": input should be a valid boolean'),
        ({"ways": ["kep-24", "volcano"]}, "groups.ways[1]: \"volcano\": input should be 'koordinator-annotations'"),
        ({"schedulerNames": []}, "groups.schedulerNames: []: tuple should have at least 1 item"),
        ({"schedulerNames": ["it's"]}, 'groups.schedulerNames[0]: "it\'s": string should match pattern'),
        ({"capacityCheck": "fit"}, "groups.capacityCheck: \"fit\": input should be 'Fit', 'Probe' or 'Off'"),
        ({"capacityCheck": True}, "groups.capacityCheck: \"On\": input should be 'Fit', 'Probe' or 'Off'"),
        ({"starvationSeconds": -1}, "groups.starvationSeconds: -1: input should be greater than or equal to 0"),
        ({"waitSeconds": 2**31}, "groups.waitSeconds: 2147483648: input should be less than or equal to 2147483647"),
        ({"wait": 5}, "groups.wait: 5: extra inputs are not permitted"),
        (None, "groups: null: input should be"),
    ],
)
def test_a_bad_value_is_reported_with_its_path(values: Any, line: str) -> None:
    with pytest.raises(BadSettings) as problem:
        load({"groups": values})
    assert str(problem.value).startswith(line)


def test_on_and_off_need_no_quotes() -> None:
    """Helm reads them as booleans."""
    made = load({"groups": {"native": True, "capacityCheck": False}}).groups
    assert (made.native, made.capacity_check) == (Native.ON, CapacityCheck.OFF)
    assert load({"groups": {"native": False}}).groups.native is Native.OFF
