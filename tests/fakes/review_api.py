"""The little of an API server that the page asks: whose token, may he list that, and which pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource

Json = dict[str, Any]
EVERYWHERE = "*"


@dataclass
class FakeReviewApi:
    """`users` by token; `grants` are (user, `jobsets.jobset.x-k8s.io`, namespace or EVERYWHERE)."""

    users: dict[str, str] = field(default_factory=dict)
    grants: set[tuple[str, str, str]] = field(default_factory=set)
    pods: list[Json] = field(default_factory=list)
    reviews: list[tuple[str, Json]] = field(default_factory=list)
    """Every review: its resource and spec."""
    failing: Exception | None = None
    """What every request ends with, if anything."""

    def client(self) -> Client:
        return cast("Client", self)

    def without_retries(self) -> Client:
        return self.client()

    def admin(self, user: str = "admin") -> str:
        """A token of a user who may list everything."""
        self.users[token := f"{user}-token"] = user
        kinds = ("jobsets.jobset.x-k8s.io", "jobs.batch", "leaderworkersets.leaderworkerset.x-k8s.io", "pods")
        groups = ("incubator.scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
        self.grants |= {(user, kind, EVERYWHERE) for kind in (*kinds, *(f"podgroups.{it}" for it in groups))}
        return token

    def member(self, *namespaces: str, user: str = "member") -> str:
        """A token of a user who may list JobSets and pods in these namespaces only."""
        self.users[token := f"{user}-token"] = user
        self.grants |= {(user, kind, it) for it in namespaces for kind in ("jobsets.jobset.x-k8s.io", "pods")}
        return token

    async def create(self, resource: Resource, body: Mapping[str, Any], *_: Any, **__: Any) -> Json:
        spec = body["spec"]
        self.reviews.append((resource.plural, dict(spec)))
        if self.failing is not None:
            raise self.failing
        if resource == TOKEN_REVIEWS:
            user = self.users.get(spec["token"])
            said = {"username": user, "uid": f"uid-{user}", "groups": ["system:authenticated"]}
            return {"status": {"authenticated": True, "user": said} if user else {"error": "unknown"}}
        assert resource == SUBJECT_ACCESS_REVIEWS
        about = spec["resourceAttributes"]
        assert about["verb"] == "list"
        kind = f"{about['resource']}.{about['group']}" if about["group"] else about["resource"]
        wide = (spec["user"], kind, EVERYWHERE) in self.grants
        return {"status": {"allowed": wide or (spec["user"], kind, about["namespace"]) in self.grants}}

    async def list(self, resource: Resource, namespace: str | None = None, *, type: Any = None, **_: Any) -> Any:  # noqa: A002
        if self.failing is not None:
            raise self.failing
        assert resource.plural == "pods"
        found = [it for it in self.pods if it["metadata"]["namespace"] == namespace]
        return msgspec.json.decode(msgspec.json.encode({"metadata": {}, "items": found}), type=type)
