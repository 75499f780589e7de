"""Viewers see what they may list, or which right they lack."""

from collections.abc import AsyncIterator

import pytest

from controllers.statuspage import auth
from jobset_gate import names
from tests.fakes import gangs
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import pod_group
from tests.fakes.served_page import ServedPage, read, serve_page

JOBSETS = "jobsets.jobset.x-k8s.io"


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    """Two namespaces with a gang each, and two groups in `team`, one with a PodGroup."""
    async with serve_page() as made:
        made.put(gangs.jobset(namespace="team", uid="u-a"), gangs.pod(0))
        made.put(gangs.jobset(namespace="other", uid="u-b"), gangs.pod(0))
        made.groups.put(
            group_snapshot(pod("a"), group=pod_group(names.PLUGINS_GROUP, minMember=3)),
            group_snapshot(pod("b"), of=key("bare")),
            group_snapshot(pod("c"), of=key("far", namespace="other")),
        )
        yield made


async def test_a_restricted_viewer_sees_these_namespaces_only(stage: ServedPage) -> None:
    member = stage.api.member("team")
    status, page = await read(stage, "/", member)
    assert (status, "gang-team.train" in page, "other" in page) == (200, True, False)
    assert '<strong id="total">1</strong>' in page
    assert f"Shown is what is in namespaces in which you may list {JOBSETS}." in page
    assert (await read(stage, "/gangs/team/train", member))[0] == 200


@pytest.mark.parametrize("path", ["/?namespace=other", "/gangs/other/train", "/gangs/other/nothing-there"])
async def test_a_403_names_the_missing_right(stage: ServedPage, path: str) -> None:
    """The same whether or not it exists: names of gangs are not revealed."""
    status, page = await read(stage, path, stage.api.member("team"))
    assert status == 403
    assert f"You may not list {JOBSETS} in namespace other" in page
    assert f"kubectl auth can-i list {JOBSETS} -n other" in page
    assert "gang-other" not in page


async def test_who_may_list_nothing_can_name_a_namespace_and_without_pods_there_are_no_groups(
    stage: ServedPage,
) -> None:
    status, page = await read(stage, "/", stage.api.member())
    assert status == 403
    for expected in ("You are signed in as member", "in all namespaces", 'name="namespace"'):
        assert expected in page
    stage.api.users["half"] = "half"
    stage.api.grants.add(("half", JOBSETS, "*"))
    status, page = await read(stage, "/groups", "half")
    assert (status, "You may not list pods in all namespaces" in page) == (403, True)


async def test_the_timeline_needs_the_right_to_list_pods(stage: ServedPage) -> None:
    stage.api.users["half"] = "half"
    stage.api.grants.add(("half", JOBSETS, "team"))
    status, page = await read(stage, "/gangs/team/train", "half")
    assert (status, "Pods and timeline need the right to list pods in namespace team" in page) == (200, True)
    assert ('id="timeline"' in page, 'class="pod ' in page) == (False, False)
    status, page = await read(stage, "/gangs/team/train/timeline.svg", "half")
    assert (status, "You may not list pods in namespace team" in page) == (403, True)


async def test_a_group_with_a_podgroup_needs_the_right_to_list_those_too(stage: ServedPage) -> None:
    member = stage.api.member("team")
    _, page = await read(stage, "/groups", member)
    assert [f">{it}<" in page for it in ("bare", "g", "far")] == [True, False, False]
    status, page = await read(stage, "/groups/team/g", member)
    assert (status, "You may not list podgroups.scheduling.x-k8s.io in namespace team" in page) == (403, True)
    stage.api.grants.add(("member", "podgroups.scheduling.x-k8s.io", "team"))
    stage.elapsed += 60
    assert (await read(stage, "/groups/team/g", member))[0] == 200


async def test_access_reviews_have_all_that_the_token_review_returned(stage: ServedPage) -> None:
    await read(stage, "/", stage.api.member("team"))
    spec = next(spec for kind, spec in stage.api.reviews if kind == "subjectaccessreviews")
    assert (spec["user"], spec["uid"], spec["groups"]) == ("member", "uid-member", ["system:authenticated"])
    assert spec["resourceAttributes"] == {
        "group": "jobset.x-k8s.io", "resource": "jobsets", "verb": "list", "namespace": "",
    }  # fmt: skip


async def test_in_a_large_cluster_a_restricted_viewer_names_a_namespace(stage: ServedPage) -> None:
    """Each namespace is one SubjectAccessReview."""
    for number in range(auth.MAX_NAMESPACES):
        stage.put(gangs.jobset(namespace=f"n-{number}", uid=f"u-{number}"), gangs.pod(0))
    member = stage.api.member("team")
    status, page = await read(stage, "/", member)
    assert (status, "There are too many namespaces" in page) == (403, True)
    assert len(stage.api.reviews) < 10
    assert (await read(stage, "/?namespace=team", member))[0] == 200
