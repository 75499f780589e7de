"""TokenReview and SubjectAccessReview: there is one token, and its user may do everything."""

from __future__ import annotations

from typing import Final

from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest, parse_body, whole_object, with_identity
from jobset_gate.fake.apiserver.responses import ApiResponse, Obj, bad_request, encode
from jobset_gate.objects.unstructured import as_map, nested

TOKEN: Final = "demo"  # noqa: S105 - it protects nothing: the server asks nobody for a token
USER: Final = "demo"

_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")


def is_review(kind: ServedKind) -> bool:
    """Whether objects of this kind are answered and not stored."""
    return kind.group in _GROUPS


def review(request: ApiRequest) -> ApiResponse:
    """The review with its status. Errors: StatusError 400."""
    kind, body = request.kind, whole_object(request, parse_body(request))
    spec = as_map(body.get("spec"))
    status: Obj
    if kind.plural == "tokenreviews":
        known = spec.get("token") == TOKEN
        user = {"username": USER, "uid": USER, "groups": ["system:authenticated"]}
        status = {"authenticated": True, "user": user} if known else {"error": "the token is not known"}
    else:
        if not nested(spec, "resourceAttributes", "verb"):
            raise bad_request("spec.resourceAttributes.verb is missing")
        status = {"allowed": spec.get("user") == USER}
    return ApiResponse(201, encode(with_identity(kind, {**body, "status": status})))
