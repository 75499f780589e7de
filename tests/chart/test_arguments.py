"""The program understands every argument that the chart gives it."""

from typing import Any

import pytest
import typer

from jobset_gate.cli.app import GlobalOptions, build
from tests.chart.helm import Helm, Json, merged
from tests.chart.samples import SAMPLES


def understood(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The command and its options, as the command line reads them. Raises what a wrong one raises."""
    group: Any = typer.main.get_command(build("jobset-gate", GlobalOptions()))
    name, *rest = arguments
    return name, group.commands[name].make_context(name, rest).params


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_arguments_of_a_component_are_understood(helm4: Helm, component: str, sample: str) -> None:
    values: Json = SAMPLES[sample]
    name, options = understood(helm4.render(values).container(component)["args"])
    assert name == component
    assert options["host"] == "0.0.0.0"  # noqa: S104 - what a pod listens on
    assert options["port"] == {"webhook": 10250, "controller": 8080}[component]


def test_the_arguments_of_the_job_that_takes_the_field_out_are_understood(helm4: Helm) -> None:
    found = helm4.render({"crds": {"keep": False}})
    (container,) = found.one("Job", "jobset-gate-crd-field")["spec"]["template"]["spec"]["containers"]
    assert understood(container["args"]) == ("install-crd-field", {"remove": True, "kubeconfig": None, "context": None})


def test_what_an_operator_adds_wins(helm4: Helm) -> None:
    added = {"extraArgs": ["--log-level=debug", "--workers=7"]}
    found = helm4.render(merged({"logging": {"level": "error"}}, {"controller": added}))
    _, options = understood(found.container("controller")["args"])
    assert options["log_level"] == "debug"
    assert options["workers"] == 7


def test_a_wrong_argument_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option: --lead"):
        understood(["controller", "--lead"])
