"""`make try`: its last words are commands that work in the shell of the person who reads them."""

from pathlib import Path

import pytest

from e2e import __main__ as runner
from e2e import tools, tryout


def test_the_next_steps_name_the_cluster_and_the_gang() -> None:
    said = tryout.next_steps("/tmp/a.kubeconfig", Path("/somewhere/gang.yaml"), airgap=False)  # noqa: S108 - a name
    assert "export KUBECONFIG=/tmp/a.kubeconfig" in said
    assert "kubectl jobset-gate timeline first-gang" in said
    assert "kubectl delete jobset first-gang" in said
    assert "kubectl apply -f /somewhere/gang.yaml" in said
    assert "make try DELETE=1" in said
    assert "env.sh" not in said


def test_where_kind_was_made_here_the_shell_has_to_find_it_first() -> None:
    lines = tryout.next_steps("a", Path("b"), airgap=True).splitlines()
    assert lines[1].startswith(f"  . {tools.AIRGAP / 'env.sh'}")


def test_a_wrong_word_is_refused_before_anything_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.tried(["--remove"]) == 2
    assert "usage: python -m e2e try [--delete]" in capsys.readouterr().err
