"""Every example is taken by a real API server, with its kinds and our webhooks: nothing unknown, nothing misspelt.

How their pods start on real kubelets is the business of e2e/scenarios/test_examples*.py.
"""

import json
from typing import Any

import yaml

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.settings import Gangs, Settings
from jobset_gate.sources.table import SOURCES
from tests.fakes import lws_standin
from tests.fakes.admission_server import registered, registered_for_pods, registered_for_start_groups
from tests.fakes.train_jobs import TUNE, jobset_of
from tests.fakes.wire_objects import owner
from tests.plane.planes import Plane
from tests.repo.files import ROOT

Json = dict[str, Any]
FOLDER = ROOT / "examples"
FILES = sorted(FOLDER.rglob("*.yaml"))


async def test_the_api_server_and_our_webhooks_take_all_of_them(plane: Plane, client: Client, namespace: str) -> None:
    settings = Settings(gangs=Gangs(sources=tuple(SOURCES)))
    await lws_standin.install(client)
    async with (
        registered(client, namespace, settings),
        registered_for_pods(client, namespace),
        registered_for_start_groups(client, namespace, settings),
    ):
        made = await stored(plane, namespace)
        for name, one in made:
            for job in of_gang(one):
                assert names.BARRIER_CONTAINER in str(job), name
            for template in templates(one) if name.startswith(("groups/", "start-group")) else ():
                its = owner(one["kind"], one["metadata"]["name"], "u")
                meta = {**template["metadata"], "generateName": "a-", "ownerReferences": [its]}
                pod = await client.create(PODS, {"metadata": meta, "spec": template["spec"]}, namespace, dry_run=True)
                if name.startswith("start-group"):
                    assert names.BARRIER_CONTAINER in str(pod["spec"]["initContainers"])
                else:
                    assert [it["name"] for it in pod["spec"]["schedulingGates"]] == [names.POD_GROUP_GATE], name
    assert len({name for name, _ in made}) == len(FILES)
    assert {one["kind"] for _, one in made} >= {"JobSet", "Job", "LeaderWorkerSet", names.POD_GROUP, "ConfigMap"}
    (groups,) = (one["spec"]["leaderWorkerTemplate"] for _, one in made if one["kind"] == "LeaderWorkerSet")
    assert groups["workerTemplate"]["metadata"]["labels"] == {names.GATED: names.GATED_LWS}


async def stored(plane: Plane, namespace: str) -> list[tuple[str, Json]]:
    """(file, object) as it would be stored: a dry run with kubectl's own strict validation."""
    found: list[Json] = []
    manifests: list[Json] = []
    for file in FILES:
        for given in yaml.safe_load_all(file.read_text()):
            one = jobset_of(given, TUNE) if given["kind"] == "TrainJob" else given  # the cluster has no Trainer
            if "namespace" in one["metadata"] or one["kind"] in {"JobSet", "LeaderWorkerSet", "ConfigMap"}:
                one["metadata"]["namespace"] = namespace
            one["metadata"].setdefault("annotations", {})["file"] = str(file.relative_to(FOLDER))
            # Two stories of one proposal have one name.
            one["metadata"]["name"] += "-2" if file.stem == "story-2" else ""
            manifests.append(one)
    everything = {"apiVersion": "v1", "kind": "List", "items": manifests}
    ran = await plane.kubectl("create", "--dry-run=server", "--output=json", "-f", "-", stdin=everything)
    decoder, text = json.JSONDecoder(), ran.stdout.strip()
    while text:
        one, end = decoder.raw_decode(text)
        text = text[end:].strip()
        found += one["items"] if one["kind"] == "List" else [one]
    return [(one["metadata"]["annotations"]["file"], one) for one in found]


def of_gang(one: Json) -> list[Json]:
    """The replicatedJobs of a gang's own."""
    jobs: list[Json] = one["spec"]["replicatedJobs"] if one["kind"] == "JobSet" else []
    config = one.get("spec", {}).get(names.CONFIG_FIELD) or {}
    config = config or json.loads(one["metadata"]["annotations"].get(names.CONFIG, "{}"))
    targets = config.get(names.TARGETS_FIELD) or [job["name"] for job in jobs]
    return [job for job in jobs if job["name"] in targets]


def templates(one: Json) -> list[Json]:
    """Of its pods."""
    if one["kind"] == "JobSet":
        return [job["template"]["spec"]["template"] for job in one["spec"]["replicatedJobs"]]
    return [one["spec"]["template"]] if one["kind"] in ("Job", "StatefulSet") else []
