"""LabelSelectors of objects: which labels they match."""

from collections.abc import Mapping
from typing import Any

from jobset_gate.objects.unstructured import Json, as_list, as_map


def selector_matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """One that is empty or missing matches everything."""
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
