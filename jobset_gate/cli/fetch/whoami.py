"""Who is asking: as the API server sees it, or else as the kubeconfig calls it."""

import os
from pathlib import Path
from typing import Any

import yaml

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import SELF_SUBJECT_REVIEWS
from jobset_gate.objects.unstructured import as_list, nested

UNKNOWN = "an unknown user"


async def current_user(client: Client, kubeconfig: str | None, context: str | None) -> str:
    """In words for people; servers before 1.28, and some that are none, cannot say it."""
    try:
        said = nested(await client.create(SELF_SUBJECT_REVIEWS, {}), "status", "userInfo", "username")
    except ApiError:
        said = None
    if isinstance(said, str) and said:
        return said
    named = _of_files(_files(kubeconfig), context)
    return f"{named} (the kubeconfig's word)" if named else UNKNOWN


def _files(kubeconfig: str | None) -> list[Path]:
    """Where kubectl would look, too."""
    if kubeconfig is not None:
        return [Path(kubeconfig)]
    named = [Path(it) for it in os.environ.get("KUBECONFIG", "").split(os.pathsep) if it]
    return named or [Path.home() / ".kube" / "config"]


def _of_files(files: list[Path], context: str | None) -> str:
    """Of several files the first that says something wins."""
    loaded = [it for it in map(_load, files) if isinstance(it, dict)]
    chosen = context or next((it["current-context"] for it in loaded if it.get("current-context")), None)
    for one in loaded:
        for its in as_list(one.get("contexts")):
            if nested(its, "name") == chosen:
                return str(nested(its, "context", "user") or "")
    return ""


def _load(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError):
        return None
