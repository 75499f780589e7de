"""Commands that are printed reach the same cluster, and can be typed as they are."""

import pytest
import typer
from typer.core import TyperCommand

from jobset_gate.cli.cluster import ClusterOptions, Invocation


def context(program: str) -> typer.Context:
    return typer.Context(TyperCommand("why"), info_name=program)


PLAIN = Invocation(context("jobset-gate"))
FAR_CLUSTER = ClusterOptions(kubeconfig="my files/config", context="far")
FAR = Invocation(context("kubectl jobset-gate"), "team", FAR_CLUSTER)
OPTIONS = "--context far --kubeconfig 'my files/config'"


@pytest.mark.parametrize(
    ("command", "plain", "far"),
    [
        ("kubectl describe pod a -n b", "kubectl describe pod a -n b", f"kubectl describe pod a -n b {OPTIONS}"),
        ("kubectl jobset-gate doctor", "jobset-gate doctor", f"kubectl jobset-gate doctor -n team {OPTIONS}"),
        ("jobset-gate why a -n b", "jobset-gate why a -n b", f"kubectl jobset-gate why a -n b {OPTIONS}"),
        ("kubectl get pods -A | grep x", "kubectl get pods -A | grep x", f"kubectl get pods -A {OPTIONS} | grep x"),
        ("kubectl exec a -- ls", "kubectl exec a -- ls", f"kubectl exec a {OPTIONS} -- ls"),
        ("helm upgrade x y", "helm upgrade x y", "helm upgrade x y"),
        ("", "", ""),
    ],
)
def test_a_command_has_the_options_of_who_asked(command: str, plain: str, far: str) -> None:
    assert (PLAIN.command(command), FAR.command(command)) == (plain, far)


def test_commands_within_words_have_them_too() -> None:
    words = "run `kubectl get jobsets` and `helm upgrade`, or set `x`"
    assert FAR.rewrite_commands(words) == f"run `kubectl get jobsets {OPTIONS}` and `helm upgrade`, or set `x`"
