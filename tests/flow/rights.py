"""RBAC taken apart: what manifests grant a service account, right by right, and which of it requests have needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobset_gate.kube.client import Client
from tests.flow.installed import Installed
from tests.plane.audit import AuditedRequest

Json = dict[str, Any]
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TERMINATING = "NamespaceTerminating"
NAMELESS = ("create", "deletecollection")
"""Verbs of requests that name no object."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource. `name` "": of any name; `namespace` "": everywhere."""

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def allows(self, request: AuditedRequest) -> bool:
        return (
            (self.group, self.resource, self.verb) == (request.group, request.resource, request.verb)
            and self.name in ("", request.name)
            and self.namespace in ("", request.namespace)
        )

    def within(self, stands_for: str, namespace: str) -> Right:
        """With a namespace that is known only now."""
        return replace(self, namespace=namespace) if self.namespace == stands_for else self


async def may(client: Client, right: Right) -> bool:
    """Asks the API server, as a client that that client is."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group, "resource": resource, "subresource": subresource,
        "verb": right.verb, "name": right.name, "namespace": right.namespace,
    }  # fmt: skip
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = await client.post(_REVIEWS, {**body, "spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


def granted(manifests: Iterable[Json], account: str, namespace: str) -> set[Right]:
    """What the bindings among these manifests give to that service account; KeyError for a role that is not there."""
    manifests = list(manifests)
    roles = {(one["kind"], one["metadata"]["name"]): one for one in manifests if one["kind"].endswith("Role")}
    found: set[Right] = set()
    for binding in manifests:
        if not binding["kind"].endswith("RoleBinding"):
            continue
        to = [(one["kind"], one["name"], one["namespace"]) for one in binding["subjects"]]
        if ("ServiceAccount", account, namespace) in to:
            where = "" if binding["kind"] == "ClusterRoleBinding" else binding["metadata"].get("namespace", namespace)
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            found |= {right for rule in role["rules"] for right in _rights(rule, where)}
    return found


def _rights(rule: Json, namespace: str) -> Iterable[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or [""]:
                    yield Right(group, resource, verb, name, namespace)


def asked_for(requests: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    """With what is checked silently: an apply that makes its object is called for the right to create it, too."""
    found = list(requests)
    return found + [replace(one, verb="create") for one in found if (one.verb, one.code) == ("patch", 201)]


def refused(requests: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    """For want of a right; a namespace that goes, of a test before this one, takes nothing from anybody."""
    return [one for one in requests if one.code in (401, 403) and one.why != TERMINATING]


def needless(rights: Iterable[Right], requests: Sequence[AuditedRequest]) -> list[Right]:
    """Those without which none of these requests would have been refused."""
    rights = list(rights)
    allowing = [[right for right in rights if right.allows(request)] for request in requests]
    needed = {only[0] for only in allowing if len(only) == 1}
    return sorted(set(rights) - needed)


def too_wide(rights: Iterable[Right], requests: Sequence[AuditedRequest], own: str) -> list[str]:
    """Those that could be bound to one name, or to the namespace `own`, and still allow all of these requests.

    The names of what belongs to a gang are its own, so they are not asked for.
    """
    wide = []
    for right in sorted(rights):
        allowed = [request for request in requests if right.allows(request)]
        names = {request.name if request.namespace in ("", own) else "" for request in allowed}
        if not right.name and right.verb not in NAMELESS and len(names) == 1 and names != {""}:
            wide.append(f"{right}: only ever for {names.pop()}")
        if not right.namespace and allowed and {request.namespace for request in allowed} == {own}:
            wide.append(f"{right}: only ever in {own}")
    return wide


def check(
    release: Installed, account: str, without: Iterable[Json] = (), spared: Collection[Right] = frozenset()
) -> None:
    """Nothing was refused to it; without any of its rights something would have been.

    `without`: manifests whose rights are left out. `spared`: rights that may be needless.
    """
    asked = asked_for(release.requests(account))
    its = granted(release.manifests, account, release.namespace) - granted(without, account, release.namespace)
    assert its
    assert refused(asked) == []
    assert set(needless(its, asked)) <= set(spared)
    assert too_wide(its, asked, release.namespace) == []
