"""What a client may ask about the server itself: versions, groups, kinds, health, as much OpenAPI as kubectl needs."""

from __future__ import annotations

from jobset_gate.fake.apiserver.encoding import Obj, encode
from jobset_gate.fake.apiserver.kinds import ServedKind, ServedKinds

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-jobset-gate-sim",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "linux/amd64",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCES: dict[tuple[str, str], tuple[tuple[str, str, list[str]], ...]] = {
    ("", "pods"): (("binding", "Binding", ["create"]), ("eviction", "Eviction", ["create"])),
    ("", "namespaces"): (("finalize", "Namespace", ["update"]),),
}


def answer(kinds: ServedKinds, path: str) -> bytes | None:
    """The body for a path that is not about objects, or None."""
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["healthz" | "readyz" | "livez"]:
            return b"ok"
        case ["version"]:
            return encode(VERSION)
        case ["api"]:
            return encode({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case _:
            return _of_kinds(kinds, parts)


def _of_kinds(kinds: ServedKinds, parts: list[str]) -> bytes | None:
    match parts:
        case ["api", version]:
            return _resources(kinds, "", version)
        case ["apis", *rest]:
            return _apis(kinds, rest)
        case ["openapi", "v3", *rest]:
            return _openapi(kinds, rest)
        case _:
            return None


def _apis(kinds: ServedKinds, rest: list[str]) -> bytes | None:
    groups = _groups(kinds)
    match rest:
        case []:
            return encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case [name]:
            found = [group for group in groups if group["name"] == name]
            return encode({"kind": "APIGroup", "apiVersion": "v1", **found[0]}) if found else None
        case [name, version]:
            return _resources(kinds, name, version)
        case _:
            return None


def _groups(kinds: ServedKinds) -> list[Obj]:
    versions: dict[str, dict[str, None]] = {}
    for kind in kinds:
        if kind.group:
            versions.setdefault(kind.group, {})[kind.version] = None
    return [_group(name, list(found)) for name, found in versions.items()]


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kinds: ServedKinds, group: str, version: str) -> bytes | None:
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not found:
        return None
    listed = [item for kind in found for item in _entries(kind)]
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": listed}
    return encode(body)


def _entries(kind: ServedKind) -> list[Obj]:
    main: Obj = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _VERBS,
    }
    if kind.short:
        main["shortNames"] = list(kind.short)
    below = [("status", kind.kind, ["get", "patch", "update"])] if kind.status else []
    below += _SUBRESOURCES.get(kind.key, ())
    return [main] + [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": sort,
            "verbs": verbs,
        }
        for name, sort, verbs in below
    ]


def _openapi(kinds: ServedKinds, rest: list[str]) -> bytes | None:
    """OpenAPI v3, reduced to what kubectl looks for: which paths take patches, and that they take fieldValidation."""
    groups = {_path(kind): kind for kind in kinds}
    if not rest:
        listed = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=1"} for path in groups}
        return encode({"paths": listed})
    wanted = "/".join(rest)
    if wanted not in groups:
        return None
    found = [kind for kind in kinds if _path(kind) == wanted]
    paths = {_object_path(kind): _path_item(kind) for kind in found}
    schemas = {_schema_name(kind): _schema(kind) for kind in found}
    info = {"title": "jobset-gate embedded API server", "version": "v1"}
    return encode({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})


def _path(kind: ServedKind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def _object_path(kind: ServedKind) -> str:
    namespace = "/namespaces/{namespace}" if kind.namespaced else ""
    return f"/{_path(kind)}{namespace}/{kind.plural}/{{name}}"


def _gvk(kind: ServedKind) -> Obj:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _path_item(kind: ServedKind) -> Obj:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    responses = {"200": {"description": "OK"}}
    patch = {"parameters": parameters, "responses": responses, "x-kubernetes-action": "patch"}
    return {"patch": {**patch, "x-kubernetes-group-version-kind": _gvk(kind)}}


def _schema_name(kind: ServedKind) -> str:
    return ".".join(filter(None, (kind.group, kind.version, kind.kind)))


def _schema(kind: ServedKind) -> Obj:
    return {"type": "object", **(kind.schema or {}), "x-kubernetes-group-version-kind": [_gvk(kind)]}
