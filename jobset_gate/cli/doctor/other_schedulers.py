"""Other schedulers and webhooks that read the keys by which pods name their groups."""

from typing import Final

from jobset_gate.cli.doctor.check import ClusterReader, Finding, ok, warning
from jobset_gate.cli.fetch.controller_status import place
from jobset_gate.kube.resources import DEPLOYMENTS, MUTATING_WEBHOOKS
from jobset_gate.objects.unstructured import Json, as_list, nested

KNOWN: Final = {
    "koord": "Koordinator",
    "volcano": "Volcano",
    "scheduler-plugins": "scheduler-plugins",
    "yunikorn": "YuniKorn",
    "kai-scheduler": "KAI Scheduler",
}
"""Words in names and images, and who it is."""
_APART: Final = "let each pod name one scheduler, and keep groups.schedulerNames and groups.ways to what is ours"


async def schedulers(reader: ClusterReader) -> list[Finding]:
    """Deployments of schedulers that place groups themselves."""
    found = [(who, one) for one in await reader.list_objects(DEPLOYMENTS) if (who := _scheduler(one))]
    why = "it reads the same labels and annotations as we do"
    return [warning(f"{who} runs here ({place(one)})", why, _APART) for who, one in found] or [
        ok("no other scheduler of groups is deployed")
    ]


async def webhooks(reader: ClusterReader) -> list[Finding]:
    """Mutating webhooks for pods that bear one of these names."""
    found: list[Finding] = []
    for one in await reader.list_objects(MUTATING_WEBHOOKS):
        name = str(nested(one, "metadata", "name"))
        who = _who(" ".join([name, *(str(nested(it, "name")) for it in as_list(one.get("webhooks")))]))
        rules = [rule for it in as_list(one.get("webhooks")) for rule in as_list(nested(it, "rules"))]
        if not any("pods" in as_list(nested(rule, "resources")) for rule in rules):
            continue
        if who:
            why = f"{who} may change the group, the scheduler or the gates of pods after us"
            found.append(warning(f"the webhook configuration {name} changes pods, too", why, _APART))
    return found


def _scheduler(deployment: Json) -> str:
    """Whose scheduler it is; "" for anything else, such as the rest of the same project."""
    images = (str(nested(it, "image")) for it in as_list(nested(deployment, "spec", "template", "spec", "containers")))
    words = [str(nested(deployment, "metadata", "name")), *images]
    return _who(" ".join(words)) if any("scheduler" in it for it in words) else ""


def _who(text: str) -> str:
    return next((who for word, who in KNOWN.items() if word in text), "")
