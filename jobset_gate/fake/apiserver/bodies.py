"""Request bodies -> objects: JSON or YAML, the right kind, the right name and namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from jobset_gate.fake.apiserver.encoding import Obj, decode
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request

_JSON = ("application/json", "")


def parse(call: ApiRequest) -> Any:
    """Errors: Problem 400 for what cannot be read, 415 for a type that is not served."""
    sort = call.content_type.partition(";")[0].strip()
    if sort in _JSON or sort.endswith(("+json", "/apply-patch+yaml")) or sort == "application/yaml":
        return _parse(call.body, yaml_too=sort.endswith("yaml"))
    raise StatusError(
        415,
        f"the body of the request was in an unknown format - accepted media types include: application/json, "
        f"application/yaml, not {sort}",
    )


def _parse(body: bytes, *, yaml_too: bool) -> Any:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not yaml_too:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    try:
        return yaml.load(body, _Loader)  # noqa: S506  # _Loader is yaml.SafeLoader without its dates
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def whole_object(call: ApiRequest) -> Obj:
    """An object of the target's kind, its namespace filled in from the path. Errors: Problem 400."""
    return checked(call, parse(call))


def checked(call: ApiRequest, obj: Any) -> Obj:
    kind = call.kind
    if not isinstance(obj, dict):
        raise bad_request(f"the body must be an object, not {type(obj).__name__}")
    given = obj.get("apiVersion"), obj.get("kind")
    if kind.custom and not all(given):
        raise bad_request("Object 'apiVersion' is missing" if given[1] else "Object 'Kind' is missing")
    if given[0] not in (None, "", kind.api_version):
        raise bad_request(
            f"the API version in the data ({given[0]}) does not match the expected API version ({kind.api_version})"
        )
    if given[1] not in (None, "", kind.kind):
        raise bad_request(f'{given[1]} in version "{kind.version}" cannot be handled as a {kind.kind}')
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    _settle_namespace(call, meta)
    return obj


def _settle_namespace(call: ApiRequest, meta: Obj) -> None:
    wanted = call.target.namespace
    if not call.kind.namespaced:
        meta.pop("namespace", None)
        return
    given = meta.get("namespace")
    if given and given != wanted:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = wanted
