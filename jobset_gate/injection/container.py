"""The barrier container and its volume: builds them, and recognizes them (A3)."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.barrier.source import Source
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, nested
from jobset_gate.settings import DEFAULT_POLL_SECONDS, Barrier
from jobset_gate.sources.table import TEMPLATE_SOURCES

TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, no secret
"""Where the API server mounts a service account's token, unless something is mounted there."""

ONLY: Final = "0"
"""The restart attempt of a source without restarts, and the epoch of a pod whose template has none."""
ENV_POLL: Final = "JOBSET_GATE_POLL"
READABLE_BY_ALL: Final = 0o444
STATE_SIZE: Final = "1Mi"
_POD_UID: Final[Json] = {"fieldPath": "metadata.uid"}
_COPIED: Final = ("cpu", "memory", "ephemeral-storage")
_SUFFIXES: Final = tuple(source.config_map_suffix for source in TEMPLATE_SOURCES.values())


def build_container(
    job: TemplateView, source: Source, config: Config, settings: Barrier, image: str | None = None, *, stream: str = ""
) -> Json:
    """The init container for one template's pods. `image` overrides the settings' (A2: barrier-image).

    `stream` is the gang's URL on the gate stream, the same for all its templates; "" for none.
    """
    made: Json = {
        "name": names.BARRIER_CONTAINER,
        "image": image or settings.image,
        "command": command(),
        "env": _environment(source, config, settings, stream),
        "volumeMounts": [
            {"name": names.VOLUME, "mountPath": names.MOUNT_PATH, "readOnly": True},
            # A mount there keeps the API server from mounting the token into this container.
            {"name": names.VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
            *([{"name": names.STATE_VOLUME, "mountPath": names.STATE_PATH}] if source.gates_pods else []),
        ],
        "securityContext": _security_context(job, settings),
    }
    resources = _resources(job, settings)
    return made | {"resources": resources} if resources else made


def stream_url(settings: Barrier, source: Source, namespace: str, name: str, token: str) -> str:
    """The gang's URL on the gate stream (A6); "" if there is no stream, or the gang has no token.

    A pod that is gated alone asks with its own token, which its environment holds: the containers of a gang are equal.
    """
    if not settings.stream_url or not token:
        return ""
    place = f"$({names.ENV_TOKEN})" if source.gates_pods else f"{name}/{token}"
    return f"{settings.stream_url.removesuffix('/')}/v1/{source.stream}/{namespace}/{place}"


def build_volumes(source: Source, name: str) -> list[Json]:
    """The barrier's volumes."""
    return [build_volume(source, name), *([build_state_volume()] if source.gates_pods else [])]


def build_state_volume() -> Json:
    """The volume in which a pod that is gated alone keeps its release."""
    return {"name": names.STATE_VOLUME, "emptyDir": {"sizeLimit": STATE_SIZE}}


def build_volume(source: Source, name: str) -> Json:
    """The volume with the gang's verdict ConfigMap, which may be missing, and the pod's own annotation.

    Of a pod that is gated alone only the annotation: its gang's ConfigMap does not say what this pod is to do (K5).
    """
    verdict = {"key": names.KEY_VERDICT, "path": names.VERDICT_FILE}
    annotation = {"path": names.ANNOTATION_FILE, "fieldRef": _annotation(names.VERDICT)}
    sources: list[Json] = [{"downwardAPI": {"items": [annotation]}}]
    if not source.gates_pods:
        sources.insert(0, {"configMap": {"name": source.config_map_name(name), "items": [verdict], "optional": True}})
    return {"name": names.VOLUME, "projected": {"defaultMode": READABLE_BY_ALL, "sources": sources}}


def command() -> list[str]:
    """The command of the container, which the validating webhook verifies."""
    return ["sh", "-c", shell_script("barrier.sh")]


@cache
def shell_script(name: str) -> str:
    """A script of this package without comments and indentation."""
    lines = files("jobset_gate.injection").joinpath(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")) + "\n"


def can_time_out(config: Config, settings: Barrier) -> bool:
    """Whether a barrier of this gang can exit with 124: by the gang's timeout or by maxWaitSeconds (A7)."""
    return config.timeout is not None or settings.max_wait_seconds is not None


def is_barrier(entry: Any) -> bool:
    """Whether an init container is a barrier of any version of jobset-gate, with any settings.

    Recognized by the generation's environment variables and the mount of its volume.
    """
    if nested(entry, "name") != names.BARRIER_CONTAINER:
        return False
    named_ = (nested(variable, "name") for variable in as_list(nested(entry, "env")))
    variables = {name for name in named_ if isinstance(name, str)}
    mounts = as_list(nested(entry, "volumeMounts"))
    ours = any(nested(it, "name") == names.VOLUME and nested(it, "mountPath") == names.MOUNT_PATH for it in mounts)
    return ours and {names.ENV_UID, names.ENV_ATTEMPT, names.ENV_EPOCH} <= variables


def is_volume(entry: Any) -> bool:
    """Whether a volume is the barrier's, of any version of jobset-gate.

    Recognized by the gang's ConfigMap; where none is mounted, by the pod's verdict annotation.
    """
    if nested(entry, "name") == names.STATE_VOLUME:
        return semantically_equal(entry, build_state_volume())
    if nested(entry, "name") != names.VOLUME:
        return False
    sources = as_list(nested(entry, "projected", "sources"))
    mounted = (nested(source, "configMap", "name") for source in sources)
    if any(isinstance(name, str) and name.endswith(_SUFFIXES) for name in mounted):
        return True
    items = [item for source in sources for item in as_list(nested(source, "downwardAPI", "items"))]
    wanted = _annotation(names.VERDICT)["fieldPath"]
    return any(nested(item, "fieldRef", "fieldPath") == wanted for item in items)


def has_barrier(job: TemplateView) -> bool:
    """Whether the pod template has a barrier."""
    return any(map(is_barrier, job.spec_list("initContainers")))


def equal_except_token(one: Any, other: Any) -> bool:
    """Semantic equality that ignores a barrier's stream token: `render` offline cannot know it."""
    return semantically_equal(_without_token(one), _without_token(other))


def _without_token(entry: Any) -> Any:
    if not is_barrier(entry):
        return entry
    return entry | {"env": [_keyless(variable) for variable in entry["env"]]}


def _keyless(variable: Any) -> Any:
    value = nested(variable, "value")
    if nested(variable, "name") != names.ENV_STREAM or not isinstance(value, str):
        return variable
    return variable | {"value": value.rpartition("/")[0]}


def _environment(source: Source, config: Config, settings: Barrier, stream: str) -> list[Json]:
    """The generation as the pod knows it. Of a pod that is gated alone it is the pod, since verdicts address it."""
    attempt = None if source.attempt_label is None else _label(source.attempt_label)
    epoch = None if source.gates_pods else _annotation(names.EPOCH)
    env: list[Json] = [
        _variable(names.ENV_UID, _POD_UID if source.gates_pods else _label(source.uid_label)),
        _variable(names.ENV_ATTEMPT, attempt),
        _variable(names.ENV_EPOCH, epoch),
        {"name": names.ENV_LIMIT, "value": _limit(config, settings)},
    ]
    if stream:
        if source.gates_pods:  # before the URL, which contains it
            env.append(_variable(names.ENV_TOKEN, _annotation(names.TOKEN)))
        env.append({"name": names.ENV_STREAM, "value": stream})
        env.append(_variable(names.ENV_POD, _POD_UID))
    if settings.poll_seconds != DEFAULT_POLL_SECONDS:
        env.append({"name": ENV_POLL, "value": f"{settings.poll_seconds:g}"})
    return env


def _variable(name: str, field: Json | None) -> Json:
    return {"name": name} | ({"value": ONLY} if field is None else {"valueFrom": {"fieldRef": dict(field)}})


def _label(key: str) -> Json:
    return {"fieldPath": f"metadata.labels['{key}']"}


def _annotation(key: str) -> Json:
    return {"fieldPath": f"metadata.annotations['{key}']"}


def _limit(config: Config, settings: Barrier) -> str:
    """A7: the timeout and a grace, so that the controller's verdict comes first; else maxWaitSeconds."""
    if config.timeout is not None:
        return str(config.timeout + settings.grace_seconds)
    return "" if settings.max_wait_seconds is None else str(settings.max_wait_seconds)


def _security_context(job: TemplateView, settings: Barrier) -> Json:
    """As Pod Security "restricted" requires. A pod-level user other than root is kept."""
    context: Json = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if as_int(nested(job.pod_spec, "securityContext", "runAsUser"), 0) != 0:
        return context
    if settings.run_as_user is not None:
        context["runAsUser"] = settings.run_as_user
    if settings.run_as_group is not None:
        context["runAsGroup"] = settings.run_as_group
    return context


def _resources(job: TemplateView, settings: Barrier) -> Json:
    """The operator's resources, or the first main container's cpu, memory and ephemeral storage, never its devices."""
    if settings.resources is not None:
        return {key: value for key, value in msgspec.structs.asdict(settings.resources).items() if value}
    first = next(iter(job.spec_list("containers")), None)
    copied: Json = {}
    for key in ("requests", "limits"):
        amounts = as_map(nested(first, "resources", key))
        kept = {name: amounts[name] for name in _COPIED if amounts.get(name) is not None}
        if kept:
            copied[key] = kept
    return copied
