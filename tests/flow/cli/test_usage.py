"""What is typed wrong is refused with exit code 2, without a request to any cluster."""

import pytest

from tests.fakes.cli_runner import RunCli

INSTEAD = "`jobset-gate groups ungate ring -n team --context far` lets its pods be scheduled now"
WRONG = {
    "get jobsets train -A": "names are those of one namespace",
    "get groups ring -A": "names are those of one namespace",
    "get jobsets -o csv": "--output",
    "groups ungate": "error: name groups, or say --all; not both",
    "groups ungate ring --all": "error: name groups, or say --all; not both",
    "release podgroup/ring -n team --context far --yes": "a pod group has no start barrier",
    "bypass podgroup/ring -n team --context far --yes": INSTEAD,
    "timeline train --price cheap": "error: --price cheap: give a number, or RESOURCE=NUMBER",
    "timeline train --price 1 --price 2": "the price of all devices is given twice",
    "wait": "NAME",
    "wait jobset/x --for=opened": "a JobSet's gate is released or timedout, not opened",
    "wait pod/x --for=opened": "a pod's gate is released or timedout, not opened",
    "wait podgroup/x --for=released": "a pod group is opened, and satisfied",
    "wait train --for=ready": "--for",
    "wait train --timeout=soon": "'soon' is not a duration such as 30s, 5m or 1h30m",
    "why jobset/ --server=http://127.0.0.1:1": "error: jobset/: a name is missing",
    "why node/x --server=http://127.0.0.1:1": "error: node/x: no such kind: node (known are NAME, jobset/NAME, ",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage(run: RunCli, line: str) -> None:
    ran = run(*line.split())
    assert (ran.code, ran.out, WRONG[line] in ran.err) == (2, "", True), ran.err
