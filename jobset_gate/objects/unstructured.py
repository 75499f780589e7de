"""Safe access to untyped Kubernetes objects: a member of the wrong type counts as absent.

The API server checks the shape after the webhook and refuses it in its own words.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from jobset_gate.objects.field_error import child_path

Json = dict[str, Any]
Path = tuple[str | int, ...]


def as_map(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def nested(value: Any, *path: str | int) -> Any:
    """The value under a path; None when there is none."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def holds(stored: Any, rendered: Any) -> bool:
    """Whether all that was rendered is there: an API server adds defaults, and drops empty values."""
    if isinstance(rendered, dict):
        return isinstance(stored, dict) and all(holds(stored.get(key), value) for key, value in rendered.items())
    if isinstance(rendered, list):
        return isinstance(stored, list) and len(stored) == len(rendered) and all(map(holds, stored, rendered))
    return bool(stored == rendered or (stored is None and rendered == ""))


def as_int(value: Any, default: int) -> int:
    """An integer as Kubernetes reads it; anything else counts as not given."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def format_path(path: Path) -> str:
    """A path as kubectl prints it: `spec.replicatedJobs[0].replicas`, `metadata.labels[example.com/key]`."""
    return reduce(child_path, path, "")


def selector_matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches these labels; one that is empty or missing matches everything."""
    wanted = as_map(as_map(selector).get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(as_map(it), labels) for it in as_list(as_map(selector).get("matchExpressions"))
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(expression.get("key"))), as_list(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def walk(value: Any) -> Iterator[tuple[Path, Any]]:
    """The value and all that is in it, each with its path; what is outside comes first."""
    reached: list[tuple[Path, Any]] = [((), value)]
    for path, each in reached:  # grows
        yield path, each
        if isinstance(each, dict):
            reached += [((*path, key), member) for key, member in each.items()]
        elif isinstance(each, list):
            reached += [((*path, index), entry) for index, entry in enumerate(each)]
