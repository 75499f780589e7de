"""Pod groups: their manifests, which pods are held for one, and its status and Events."""

from typing import Any, Final

from e2e import gangs
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import EVENTS, JOBS

Json = dict[str, Any]
NAME: Final = "ring"
ENDS_BADLY: Final = f"trap 'exit 3' TERM; echo {gangs.PRINTS_START}; sleep 3600 & wait"
"""On SIGTERM it exits with a code that matches no policy."""


def pod_group(minimum: int, *, wait: int = 300) -> Json:
    """As scheduler-plugins has it; `wait` is its limit in seconds."""
    return {
        "apiVersion": f"{names.PLUGINS_GROUP}/{names.POD_GROUP_VERSION}",
        "kind": names.POD_GROUP,
        "metadata": {"name": NAME},
        "spec": {"minMember": minimum, "scheduleTimeoutSeconds": wait},
    }


def job(
    image: str,
    pods: int,
    *,
    work: str = gangs.WORK,
    resources: Json | None = None,
    pod: Json | None = None,
    metadata: Json | None = None,
    **spec: Any,
) -> Json:
    """A Job whose pods are members of that group, or of the one that `metadata` names; `pod`: more of their spec."""
    containers = [gangs.main(image, work=work, resources=resources or {})]
    labels = {"labels": {names.PLUGINS_NAME: NAME}}
    template = {"restartPolicy": "Never", "containers": containers, **(pod or {})}
    many = {"completions": pods, "parallelism": pods, "backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {**many, "template": {"metadata": metadata or labels, "spec": template}, **spec},
    }


def labelled(minimum: int) -> Json:
    """The metadata of pods of a group that needs no PodGroup: Alibaba's labels."""
    return {"labels": {names.ALIBABA_NAME: NAME, names.ALIBABA_MINIMUM: str(minimum)}}


def held(pod: Json) -> bool:
    """Our gate holds it, and no node has it."""
    gates = pod["spec"].get("schedulingGates") or ()
    return any(gate["name"] == names.POD_GROUP_GATE for gate in gates) and not pod["spec"].get("nodeName")


async def until_held(scenario: Scenario, count: int) -> list[Json]:
    """Until exactly that many pods are there, all of them held."""
    return await scenario.until(lambda pods: len(pods) == count and all(map(held, pods)))


async def until_reported(scenario: Scenario, reason: str, text: str = "") -> str:
    """The message of an Event on the PodGroup with that reason and text."""

    def matches(event: Json) -> bool:
        on_group = event["involvedObject"].get("kind") == names.POD_GROUP
        return on_group and event["reason"] == reason and text in event["message"]

    found = await scenario.until_any(EVENTS, matches)
    return str(found[0]["message"])


async def conditions(scenario: Scenario) -> set[str]:
    """The types of the Job's conditions that are true."""
    found = await scenario.client.get(JOBS, NAME, scenario.namespace)
    return {one["type"] for one in found["status"].get("conditions") or () if one["status"] == "True"}
