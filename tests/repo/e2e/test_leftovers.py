"""What counts as left behind: ours by label, by place or by name; not what the control plane or the nodes bring."""

import pytest

from e2e.leftovers import ours


@pytest.mark.parametrize(
    "line",
    [
        "<none>               ClusterRole  whatever              jobset-gate",
        "default              Role         jobset-gate-dry-run   jobset-gate",
        "jobset-gate-system   Secret       anything              <none>",
        "jobset-gate-system   Lease        jobset-gate-controller  <none>",
        "<none>  ValidatingWebhookConfiguration  jobset-gate  <none>",
        "<none>  MutatingWebhookConfiguration  zz-jobset-gate  <none>",
    ],
)
def test_it_is_left_behind(line: str) -> None:
    _, kind, name, _ = line.split()
    assert list(ours(line)) == [f"{kind}/{name}"]


@pytest.mark.parametrize(
    "line",
    [
        "jobset-gate-system   ConfigMap        kube-root-ca.crt      <none>",
        "jobset-gate-system   ServiceAccount   default               <none>",
        "<none>               Namespace        jobset-gate-system    <none>",
        "<none>               Node             jobset-gate-e2e-worker   <none>",
        "e2e-story1           ConfigMap        gang-group-scheduling    <none>",
        "<none>               ClusterRole      jobset-standin           <none>",
    ],
)
def test_it_is_none_of_ours(line: str) -> None:
    assert not list(ours(line))
