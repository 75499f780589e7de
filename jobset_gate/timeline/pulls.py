"""When images were pulled, as far as the kubelets' Events tell."""

import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Final

from jobset_gate.barrier.events import CoreEvent

PULLED: Final = "involvedObject.kind=Pod,reason=Pulled"
"""Field selector of the Events of pulled images."""
_CONTAINER: Final = re.compile(r"spec\.(?:initC|c)ontainers\{(.*)\}")

Pulls = Mapping[str, float]
"""When each container's image was there first, by the name of the container."""


async def read_pulls(
    events: AsyncGenerator[CoreEvent, None], pods: Collection[str], known: dict[str, dict[str, float]], most: int
) -> bool:
    """Adds those of these pods to `known`, by UID and by container. Returns whether it stopped after `most` Events."""
    number = 0
    async with aclosing(events):
        async for event in events:
            _add_pull(known, event, pods)
            number += 1
            if number >= most:
                return True
    return False


def _add_pull(known: dict[str, dict[str, float]], event: CoreEvent, pods: Collection[str]) -> None:
    """When an image was first there: later pulls are those of restarts."""
    seen = event.involved_object
    container, at = _CONTAINER.fullmatch(seen.field_path), event.first_timestamp or event.event_time
    if seen.uid in pods and container and at:
        seconds, pulls = datetime.fromisoformat(at).timestamp(), known.setdefault(seen.uid, {})
        pulls[container[1]] = min(seconds, pulls.get(container[1], seconds))
