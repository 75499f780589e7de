"""URL paths and queries -> what a request wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from jobset_gate.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate.fake.apiserver.status_errors import cause, invalid, no_such_path

_OPTIONS = ServedKind("meta.k8s.io", "v1", "options", "Options")


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The object (with a name) or collection that a path addresses. namespace None: all, or cluster-scoped."""

    kind: ServedKind
    namespace: str | None = None
    name: str | None = None
    subresource: str = ""


@dataclass(slots=True)
class ApiRequest:
    """One API request. verb: get, list, watch, create, update, patch, delete or deletecollection."""

    verb: str
    target: RequestTarget
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"
    agent: str = "unknown"
    user: str = "kubernetes-admin"
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> ServedKind:
        return self.target.kind

    @property
    def dry_run(self) -> bool:
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            raise invalid(_OPTIONS, "", [cause("dryRun", f'Unsupported value: ["{value}"]: supported values: "All"')])
        return bool(value)

    @property
    def manager(self) -> str:
        """The field manager: as asked for, else what the client calls itself."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0][:128] or "unknown"

    def flag(self, name: str) -> bool:
        """A boolean of the query, as Go reads it."""
        return self.query.get(name, "").lower() in ("1", "t", "true")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def target(kinds: ServedKinds, path: str) -> RequestTarget:
    """Errors: Problem 404 for a path that leads nowhere."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise no_such_path()
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) >= 3 and kinds.at(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        raise no_such_path()
    kind = kinds.at(group, version, rest[0])
    if kind is None or (kind.namespaced is False and namespace is not None):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else None
    if kind.namespaced and name is not None and namespace is None:
        raise no_such_path()
    return RequestTarget(kind, namespace, name, rest[2] if len(rest) > 2 else "")
