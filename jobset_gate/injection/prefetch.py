"""The init containers that bring the main images onto the node before the barrier, and their volume (A8).

The kubelet pulls an image when a container of it is to run, and main containers run last. So each main image first
runs a program that does nothing; `group-scheduling-prefetch` puts it into a volume that they all mount, since an image
need not hold any program that exits.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.injection.container import TOKEN_PATH, shell_script
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView, annotations_of
from jobset_gate.objects.unstructured import Json, as_list, nested

NO_DEVICES: Final = ({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},)
"""Or NVIDIA's container runtime would wait for its driver in images that ask for all devices."""
_RUNNER: Final = re.compile(re.escape(names.PREFETCH_CONTAINER) + "-[0-9]+")


def is_requested(obj: Json) -> bool:
    """Whether the JobSet's pods are to have their images before they count as started."""
    return annotations_of(obj).get(names.PREFETCH_IMAGES) == "true"


def build_containers(job: TemplateView, barrier: Json) -> list[Json]:
    """What goes before this barrier into one replicatedJob's pods; nothing if all images are there anyway."""
    pulls = [
        _container(f"{names.PREFETCH_CONTAINER}-{number}", image, noop_command(), barrier)
        | ({} if policy is None else {"imagePullPolicy": policy})
        | {"env": [dict(it) for it in NO_DEVICES]}
        for number, (image, policy) in enumerate(_images(job), start=1)
    ]
    copies = _container(names.PREFETCH_CONTAINER, barrier["image"], copy_command(), barrier, writes=True)
    return [copies, *pulls] if pulls else []


def build_volume() -> Json:
    """The volume with the program."""
    return {"name": names.PREFETCH_VOLUME, "emptyDir": {}}


def copy_command() -> list[str]:
    """The command of the first container, which the validating webhook verifies."""
    return ["sh", "-c", shell_script("prefetch.sh")]


def noop_command() -> list[str]:
    """What the containers of the main images run; the same on every kind of machine."""
    return [names.PREFETCH_PROGRAM]


def is_reserved(name: Any) -> bool:
    """Whether the name is reserved for prefetch containers."""
    return isinstance(name, str) and (name == names.PREFETCH_CONTAINER or _RUNNER.fullmatch(name) is not None)


def is_container(entry: Any) -> bool:
    """Whether an init container is one that some version of jobset-gate has rendered: its volume at its path."""
    mounts = as_list(nested(entry, "volumeMounts"))
    return is_reserved(nested(entry, "name")) and any(
        nested(it, "name") == names.PREFETCH_VOLUME and nested(it, "mountPath") == names.PREFETCH_PATH for it in mounts
    )


def is_volume(entry: Any) -> bool:
    """Whether a volume is one that some version of jobset-gate has rendered."""
    others = set(entry) - {"name", "emptyDir"} if isinstance(entry, dict) else set()
    return nested(entry, "name") == names.PREFETCH_VOLUME and not others


def is_foreign_volume(job: TemplateView) -> Callable[[Any], bool]:
    """A predicate for volumes with our name that are the user's: no injected container uses them, and they differ from
    the injected form or a container of the user mounts them.
    """
    if any(map(is_container, job.spec_list("initContainers"))):
        return lambda _: False
    theirs = [*user_init_containers(job), *job.spec_list("containers")]
    used = any(
        nested(it, "name") == names.PREFETCH_VOLUME for one in theirs for it in as_list(nested(one, "volumeMounts"))
    )
    return lambda entry: (
        nested(entry, "name") == names.PREFETCH_VOLUME and (used or not semantically_equal(entry, build_volume()))
    )


def user_init_containers(job: TemplateView) -> list[Json]:
    """The user's own init containers."""
    return [
        it
        for it in job.spec_list("initContainers")
        if isinstance(it, dict) and not is_reserved(it.get("name")) and it.get("name") != names.BARRIER_CONTAINER
    ]


def images_not_pulled(job: TemplateView, before: list[Any]) -> list[str]:
    """Main images that none of these containers runs, whatever its pull policy."""
    there = {image for image, _ in _pairs(before)}
    return sorted({image for image, _ in _pairs(job.spec_list("containers"))} - there)


def _images(job: TemplateView) -> Iterator[tuple[str, Any]]:
    """Each image and pull policy of the main containers once, unless an init container of the user's runs it."""
    seen = {(image, str(policy)) for image, policy in _pairs(user_init_containers(job))}
    for image, policy in _pairs(job.spec_list("containers")):
        if (image, str(policy)) not in seen:
            seen.add((image, str(policy)))
            yield image, policy


def _pairs(entries: list[Any]) -> Iterator[tuple[str, Any]]:
    for entry in entries:
        image = nested(entry, "image")
        if isinstance(image, str) and image:
            yield image, nested(entry, "imagePullPolicy")


def _container(name: str, image: str, command: list[str], barrier: Json, *, writes: bool = False) -> Json:
    """As safe as the barrier, and with its resources."""
    mount: Json = {"name": names.PREFETCH_VOLUME, "mountPath": names.PREFETCH_PATH}
    return {
        "name": name,
        "image": image,
        "command": command,
        "volumeMounts": [
            mount if writes else mount | {"readOnly": True},
            # Something mounted there keeps the API server from mounting the pod's token into this container.
            {"name": names.PREFETCH_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **{key: barrier[key] for key in ("securityContext", "resources") if key in barrier},
    }
