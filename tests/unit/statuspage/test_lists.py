"""What a viewer reads: lists, counts, permalinks, banners, empty states; and nothing that a tenant made active."""

import asyncio
import re
from typing import Any

import pytest

from controllers.statuspage import detail
from controllers.statuspage.middleware import PageOptions
from controllers.statuspage.pods import MAX_PODS
from controllers.statuspage.source import Freshness
from jobset_gate import names
from jobset_gate.barrier.model import PendingReason
from jobset_gate.kube.errors import Unreachable
from jobset_gate.podgroups.model import Flavor
from tests.fakes import gangs
from tests.fakes.eventually import PATIENCE
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.served_page import http_session, line, read, serve_page
from tests.fakes.wire_objects import owner
from tests.page import showcase

EVIL = '</td><script>alert("1")</script><img src=x onerror=alert(2)>'


async def test_the_line_of_a_gang_and_its_permalink_say_progress_reasons_and_time_left() -> None:
    async with serve_page(now=lambda: gangs.T0 + 30) as stage:
        workers, driver = (
            gangs.replicated_job(parallelism=3, completions=3),
            gangs.replicated_job("driver", parallelism=1),
        )
        stage.put(
            gangs.jobset(workers, driver),
            gangs.pod(0),
            gangs.waiting_pod(1, detail="0/40 nodes are available"),
            gangs.waiting_pod(2, PendingReason.IMAGE_PULL, 'main: Back-off pulling image "x"', created=gangs.T0),
            gangs.pod(0, "driver"),
            gate=gangs.config_map(waiting_since=gangs.clock()),
        )
        _, page = await read(stage, "/")
        mine = line(page, "gang-default.train")
        assert 'href="/gangs/default/train"' in mine
        assert 'data-state="Waiting" data-started="2" data-expected="4"' in mine
        reasons = re.findall(r'class="chip" data-reason="(\w+)">\w+ <b>(\d+)<', mine)
        assert reasons == [("Unscheduled", "1"), ("ImagePull", "1")]
        assert ">0/40 nodes are available<" in mine
        assert f'data-until="{gangs.T0 + 300}">4m30s left' in mine
        assert '<strong id="total">1</strong> gang' in page
        status, page = await read(stage, "/gangs/default/train")
        assert status == 200
        for words in (
            "2 of 4 pods started",
            'data-why="Unscheduled" data-count="1"',
            "Unscheduled <b>1</b></span>",
            '<span class="reason">0/40 nodes are available</span>',
            "kubectl describe pod train-workers-0-1 -n default",
            "every barrier ends with exit code 124",
            "4m30s left",
            '<img id="timeline" src="/gangs/default/train/timeline.svg"',
        ):
            assert words in page


async def test_pages_without_anything_say_so() -> None:
    async with serve_page() as stage:
        assert "There are no gangs." in (await read(stage, "/"))[1]
        assert "There are no pod groups." in (await read(stage, "/groups"))[1]
        assert "There are no gangs in namespace nowhere." in (await read(stage, "/?namespace=nowhere"))[1]
        stage.put(gangs.jobset(), gangs.pod(0))
        assert "None of the 1 gangs fits this search." in (await read(stage, "/?q=nothing"))[1]
    async with serve_page(with_groups=False) as stage:
        assert "Pod groups are switched off" in (await read(stage, "/groups"))[1]


async def test_what_is_not_there_is_a_404_and_says_what_was_looked_for() -> None:
    async with serve_page() as stage:
        for path, what in (("/gangs/team/gone", "gang team/gone"), ("/groups/team/gone", "pod group team/gone")):
            status, page = await read(stage, path)
            assert status == 404
            assert f"There is no {what}" in page
            assert 'id="nav-gangs"' in page
            assert "?namespace=team" in page
        status, page = await read(stage, "/nothing")
        assert (status, 'id="nav-groups"' in page) == (404, True)


async def test_a_page_of_ten_thousand_pods_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail, "PODS_SECONDS", PATIENCE)
    async with serve_page() as stage:
        many = 10_000
        workers = gangs.replicated_job(parallelism=many, completions=many)
        stage.put(gangs.jobset(workers), gangs.pod(0))
        stage.api.pods += [there(index) for index in range(many)]
        _, page = await read(stage, "/gangs/default/train")
        assert f"{many - MAX_PODS} pods are not shown" in page
        assert len(page) < 500_000
        _, drawn = await read(stage, "/gangs/default/train/timeline.svg")
        assert len(drawn) < 100_000


async def test_groups_of_one_name_differ_by_their_format() -> None:
    async with serve_page() as stage:
        stage.groups.put(group_snapshot(pod("a")), group_snapshot(of=key(flavor=Flavor.ALIBABA)))
        status, page = await read(stage, "/groups/team/g")
        assert (status, 'href="/groups/team/g?way=alibaba"' in page) == (300, True)
        status, page = await read(stage, "/groups/team/g?way=alibaba")
        assert (status, "<dd>alibaba</dd>" in page) == (200, True)


@pytest.mark.parametrize("name", [EVIL, "a/b", "a b?c#d", "ü%2F", ""])
async def test_a_group_of_any_name_has_an_address_that_leads_to_it(name: str) -> None:
    """Koordinator's names come from an annotation, so they are whatever a tenant likes."""
    async with serve_page() as stage:
        stage.groups.put(group_snapshot(of=key(name, Flavor.KOORDINATOR)))
        _, page = await read(stage, "/groups")
        found = re.search(r'rowheader" class="name"><a href="([^"]+)"', page)
        assert found
        status, its = await read(stage, found[1])
        assert (status, "<script>alert" in page + its, "<img src=x" in page + its) == (200, False, False)


async def test_a_group_has_a_picture_too() -> None:
    async with serve_page() as stage:
        held = pod("held-0")
        stage.groups.put(group_snapshot(held))
        stage.api.pods.append(held)
        _, page = await read(stage, "/groups/team/g")
        found = re.search(r'<img id="timeline" src="([^"]+)"', page)
        assert found
        status, drawn = await read(stage, found[1])
        assert (status, drawn.startswith("<svg"), "held-0" in drawn) == (200, True, True)
        # A viewer who may list pods elsewhere does not get it by an address of that namespace.
        status, drawn = await read(stage, found[1].replace("/team/", "/else/"), stage.api.member("else"))
        assert (status, "held-0" in drawn) == (404, False)


async def test_a_gangs_page_does_not_wait_for_pods_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_page() as stage:
        stage.put(gangs.jobset(), gangs.pod(0))
        assert 'id="timeline"' in (await read(stage, "/gangs/default/train"))[1]
        stage.elapsed += 10
        stage.api.failing = Unreachable("refused")
        status, page = await read(stage, "/gangs/default/train")
        assert (status, "1 of 2 pods started" in page) == (200, True)
        assert "The pods cannot be read: " in page
        stage.api.failing = None
        stage.elapsed += 10
        monkeypatch.setattr(detail, "PODS_SECONDS", 0.0)
        assert "The pods are still being read." in (await read(stage, "/gangs/default/train"))[1]


async def test_with_a_price_timeline_and_page_show_the_cost() -> None:
    async with serve_page(PageOptions(0, prices=showcase.PRICES), now=lambda: showcase.NOW) as stage:
        showcase.showcase(stage)
        assert "device-hours, cost <span" in (await read(stage, "/gangs/research/llama-70b-pretrain"))[1]
        _, drawn = await read(stage, "/gangs/research/llama-70b-pretrain/timeline.svg")
        assert "88 nvidia.com/gpu held at the gate: 44000 device-seconds, cost 30.56" in drawn


async def test_words_from_the_cluster_are_text() -> None:
    async with serve_page() as stage:
        stage.put(gangs.jobset(), gangs.pod(0), gangs.waiting_pod(1, detail=EVIL))
        for path in ("/", "/gangs/default/train", "/?q=" + EVIL, "/?namespace=" + EVIL + "&state=" + EVIL):
            _, page = await read(stage, path)
            assert "<script>alert" not in page
            assert "<img src=x" not in page


async def test_the_picture_is_drawn_from_the_pods_and_carries_a_policy_of_its_own() -> None:
    async with serve_page() as stage:
        stage.put(gangs.jobset(), gangs.pod(0))
        stage.api.pods.append(there())
        path = "/gangs/default/train/timeline.svg"
        async with http_session(stage, stage.api.admin()) as session, session.get(path) as answer:
            assert answer.content_type == "image/svg+xml"
            assert "sandbox" in answer.headers["Content-Security-Policy"]
            assert "script-src" not in answer.headers["Content-Security-Policy"]
            assert "train-workers-0-0" in await answer.text()
        stage.api.failing = Unreachable("refused")
        stage.elapsed += 10
        assert (await read(stage, path))[0] == 503


def there(index: int = 0) -> dict[str, Any]:
    """A pod with its times, as the API server has it."""
    labels = {
        names.JS_REPLICATED_JOB: "workers",
        names.JS_JOB_INDEX: "0",
        names.JS_UID: gangs.UID,
        names.JS_RESTART_ATTEMPT: "0",
    }
    owners = [owner("Job", "train-workers-0", "job-workers-0")]
    meta: dict[str, Any] = {"name": f"train-workers-0-{index}", "namespace": "default", "uid": "p", "labels": labels}
    meta |= {"ownerReferences": owners, "creationTimestamp": "2026-08-01T10:00:00Z"}
    return {"metadata": meta, "spec": {}, "status": {"phase": "Pending"}}


async def test_the_picture_of_one_that_timed_out_stays_as_it_was_until_it_restarts() -> None:
    """The JobSet fails for it within seconds, and its pods go: that is when people come to look."""
    words = "timed out after 300s: 1/2 pods started; missing: 1 pod: Unscheduled: no room"
    condition = gangs.condition(names.REASON_TIMED_OUT, f"{words} (uid u-1, attempt 0, epoch 0)", status="False")
    async with serve_page() as stage:
        stage.api.pods.append(there())
        stage.put(gangs.jobset(condition=condition), gangs.pod(0))
        path = "/gangs/default/train/timeline.svg"
        async with asyncio.timeout(PATIENCE):
            while "seen when the gang was ended" not in (await read(stage, path))[1]:
                pass  # made in the background
        stage.api.pods.clear()
        stage.put(gangs.jobset(condition=condition, finished=True, failed=True))
        stage.elapsed += 3600
        assert "train-workers-0-0" in (await read(stage, path))[1]
        _, page = await read(stage, "/gangs/default/train")
        for expected in ("1 of 2 pods started", words, 'id="pod-train-workers-0-0"'):
            assert expected in page
        stage.put(gangs.jobset(condition=condition, attempt=1))  # a restart is no end
        assert "train-workers-0-0" not in (await read(stage, path))[1]


async def test_the_header_says_how_true_the_page_is() -> None:
    async with serve_page(now=lambda: gangs.T0) as stage:
        assert "Watches connected." in (await read(stage, "/"))[1]
        stage.fresh = Freshness(lost=("pods",), lost_for=60.0)
        page = (await read(stage, "/"))[1]
        assert 'data-live="false" role="alert">Old: no watch of pods since 2027-01-15T07:59:00Z' in page
        stage.fresh = Freshness(leads=False, holder="other-replica")
        assert "other-replica leads, this replica stands by" in (await read(stage, "/"))[1]
        stage.put(gangs.jobset(), gangs.pod(0))
        stage.fresh = Freshness(leads=False)
        assert "No controller leads at this moment" in (await read(stage, "/"))[1]
        assert "no controller leads at this moment" in (await read(stage, "/gangs/default/train"))[1]
        stage.fresh = Freshness(unlisted="not listed yet: pods")
        status, page = await read(stage, "/")
        assert (status, "not listed yet: pods" in page, "There are no gangs" in page) == (503, True, False)
