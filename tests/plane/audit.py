"""What a real API server has written down of the requests of service accounts: verb, object, answer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # A watch is written down when it begins and when it ends; everything else once, when it is answered.
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}


@dataclass(frozen=True, slots=True, order=True)
class AuditedRequest:
    """One request. `resource` is "pods" or "jobsets/status"; a list by the field metadata.name has that `name`."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int
    path: str
    why: str = ""
    """The cause that the server names of a refusal, such as NamespaceTerminating."""


def flags(folder: Path) -> list[str]:
    """Of a kube-apiserver that keeps its record in `folder`. Blocking, which is the default: nothing is lost."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(POLICY))
    whole = ("--audit-log-maxsize=100000", "--audit-log-maxbackup=0")  # in MB: it is never rotated
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log(folder)}", *whole]


def log(folder: Path) -> Path:
    return folder / "audit.log"


def requests(folder: Path, account: str, namespace: str) -> list[AuditedRequest]:
    """All of a service account so far, in the order in which they were answered."""
    user = f"system:serviceaccount:{namespace}:{account}"
    with log(folder).open() as lines:  # hundreds of MB after a benchmark
        found = (json.loads(line) for line in lines if user in line)
        return [_request(one) for one in found if one["user"]["username"] == user]


def _request(event: dict[str, Any]) -> AuditedRequest:
    on = event.get("objectRef") or {}
    resource = "/".join(filter(None, (on.get("resource", ""), on.get("subresource", ""))))
    where = (on.get("apiGroup", ""), resource, on.get("namespace", ""), on.get("name", ""))
    answer = event.get("responseStatus") or {}
    causes = [cause.get("reason", "") for cause in (answer.get("details") or {}).get("causes") or ()]
    return AuditedRequest(event["verb"], *where, int(answer.get("code", 0)), event["requestURI"], ",".join(causes))
