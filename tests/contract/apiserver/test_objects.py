"""Creating, reading, replacing and listing: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.contract.apiserver.api import (
    CONFIGMAPS,
    JOBS,
    JSON_PATCH,
    RawApi,
    config_map,
    job,
)


async def test_a_created_object_gets_uid_time_and_version(api: RawApi) -> None:
    made = await api.post(CONFIGMAPS, config_map(a="1"))
    assert made.status == 201
    assert made.meta["uid"]
    assert made.meta["creationTimestamp"].endswith("Z")
    assert int(made.meta["resourceVersion"]) > 0
    assert made.meta["namespace"] == api.namespace
    assert "generation" not in made.meta
    assert (await api.get(f"{CONFIGMAPS}/c")).object == made.object


async def test_replacing_with_a_stale_version_or_another_uid_conflicts(api: RawApi) -> None:
    first = (await api.post(CONFIGMAPS, config_map(a="1"))).object
    second = await api.put(f"{CONFIGMAPS}/c", {**first, "data": {"a": "2"}})
    assert second.status == 200
    stale = await api.put(f"{CONFIGMAPS}/c", {**first, "data": {"a": "3"}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert stale.message.endswith("please apply your changes to the latest version and try again")
    other = await api.put(f"{CONFIGMAPS}/c", config_map(meta={"uid": "another"}))
    assert (other.status, other.reason) == (409, "Conflict")


async def test_a_write_that_changes_nothing_leaves_the_version(api: RawApi) -> None:
    first = await api.post(CONFIGMAPS, config_map(a="1"))
    put = await api.put(f"{CONFIGMAPS}/c", first.object)
    patched = await api.merge(f"{CONFIGMAPS}/c", {"data": {"a": "1"}})
    assert put.object == patched.object == first.object


async def test_dry_run_stores_nothing(api: RawApi) -> None:
    made = await api.post(f"{CONFIGMAPS}?dryRun=All", config_map(a="1"))
    assert (made.status, bool(made.meta["uid"]), "resourceVersion" in made.meta) == (201, True, False)
    assert (await api.get(f"{CONFIGMAPS}/c")).status == 404
    stored = await api.post(CONFIGMAPS, config_map(a="1"))
    changed = await api.call(
        "PATCH", f"{CONFIGMAPS}/c?dryRun=All", [{"op": "replace", "path": "/data/a", "value": "2"}], JSON_PATCH
    )
    assert changed.object["data"] == {"a": "2"}
    assert (await api.get(f"{CONFIGMAPS}/c")).object == stored.object


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=tier%3Dfront", ["a"]),
        ("labelSelector=tier!%3Dfront,team", ["b"]),
        ("labelSelector=tier%20in%20(front,back)", ["a", "b"]),
        ("labelSelector=tier%20notin%20(front),team", ["b"]),
        ("labelSelector=team%20notin%20(x)&fieldSelector=metadata.name!%3Dkube-root-ca.crt", ["b", "c"]),
        ("labelSelector=!team,plain", ["c"]),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db&labelSelector=team", ["a"]),
    ],
)
async def test_selectors_choose(api: RawApi, query: str, names: list[str]) -> None:
    for name, labels in (
        ("a", {"tier": "front", "team": "x"}),
        ("b", {"tier": "back", "team": "y"}),
        ("c", {"plain": ""}),
    ):
        await api.post(CONFIGMAPS, config_map(name, meta={"labels": labels}))
    listed = await api.get(f"{CONFIGMAPS}?{query}")
    assert [item["metadata"]["name"] for item in listed.object["items"]] == names


async def test_a_list_in_pages_has_each_object_once_and_one_version(api: RawApi) -> None:
    for name in "abcde":
        await api.post(CONFIGMAPS, config_map(name, meta={"labels": {"mine": ""}}))
    found, versions, token = list[list[str]](), set[str](), ""
    while not found or token:
        page = await api.get(f"{CONFIGMAPS}?labelSelector=mine&limit=2&continue={quote(token)}")
        assert len(page.object["items"]) <= 2
        found.append([item["metadata"]["name"] for item in page.object["items"]])
        versions.add(page.meta["resourceVersion"])
        token = page.meta.get("continue", "")
    assert found == [["a", "b"], ["c", "d"], ["e"]]
    assert len(versions) == 1
    assert (await api.get(f"{CONFIGMAPS}?continue=nonsense")).status == 400


async def test_generation_counts_changes_of_the_spec_only(api: RawApi) -> None:
    made = await api.post(JOBS, job(suspend=True))
    labelled = await api.merge(f"{JOBS}/j", {"metadata": {"labels": {"a": "b"}}})
    status = await api.merge(f"{JOBS}/j/status", {"status": {"ready": 0}})
    changed = await api.merge(f"{JOBS}/j", {"spec": {"parallelism": 3}})
    assert [reply.meta["generation"] for reply in (made, labelled, status, changed)] == [1, 1, 1, 2]
