"""A user's own release is left alone by `make e2e`."""

import pytest

from e2e import commands, gate
from e2e.cluster import E2eCluster
from e2e.helm import HelmRelease


class EmptyCluster(E2eCluster):
    """A cluster in which there is nothing that the suite has made."""

    def kubectl(self, *args: str, stdin: str | None = None, seconds: float = 0) -> str:
        assert "apply" not in args
        return "namespace/default\n"


def test_a_release_that_the_suite_has_not_made_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HelmRelease, "exists", lambda _: True)
    with pytest.raises(
        commands.CommandFailed, match="is in jobset-gate-system already, and not put there by this suite"
    ):
        gate.install(EmptyCluster("a.kubeconfig"), {})
