"""JobSet's own webhooks: defaults on CREATE, immutability on UPDATE. Served on 127.0.0.1, or behind a Service."""

from __future__ import annotations

import asyncio
import base64
import copy
import ipaddress
import json
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.objects import Json
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

MUTATE = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
VALIDATE = "/validate-jobset-x-k8s-io-v1alpha2-jobset"
MUTATING = "jobset-mutating-webhook-configuration"
VALIDATING = "jobset-validating-webhook-configuration"
LARGEST_BODY = 7 * 1024 * 1024
LONGEST_NAME = 63
PROBE_SECONDS = 0.05
_NEVER = 1e9  # seconds: the API server closes idle connections, since in virtual time a minute passes at once
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
_EMPTY_IS_ABSENT = ("labels", "annotations", "nodeSelector", "metadata", "resources", "limits", "requests")


class JobSetAdmission:
    """`start()`, `install(client)`; then `uninstall(client)`, `stop()`.

    service: (namespace, name) of the Service through which the API server calls; None: by URL, on 127.0.0.1.
    only: the namespace whose JobSets are sent, for several on one API server; None: all.
    """

    def __init__(
        self, service: tuple[str, str] | None = None, host: str = "127.0.0.1", port: int = 0, *, only: str | None = None
    ) -> None:
        self._service, self._host, self._port, self._only = service, host, port, only
        self._identity = server_identity(f"{service[1]}.{service[0]}.svc" if service else host)
        self._runner: web.AppRunner | None = None
        self._url = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post(MUTATE, _handler(mutate))
        app.router.add_post(VALIDATE, _handler(validate))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, keepalive_timeout=_NEVER)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._identity.context).start()
        self._url = f"https://{self._host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def install(self, client: Client) -> None:
        """Register, in place of what an earlier run may have left."""
        for resource, body in self._configurations():
            try:
                await client.create(resource, body)
            except AlreadyExists:
                await client.delete(resource, body["metadata"]["name"])
                await client.create(resource, body)

    async def uninstall(self, client: Client) -> None:
        for resource, body in self._configurations():
            try:
                await client.delete(resource, body["metadata"]["name"])
            except NotFound:
                continue

    async def wait_in_force(self, client: Client, namespace: str) -> None:
        """Until the API server calls both webhooks: it reads new configurations a moment later, without notice."""
        probe = manifests.jobset("jobset-admission-probe", namespace)
        while (await client.create(JOBSETS, probe, dry_run=True))["spec"].get("startupPolicy") is None:  # noqa: ASYNC110 - no event
            await asyncio.sleep(PROBE_SECONDS)
        refused = manifests.jobset("jobset-admission-probe-" + "x" * LONGEST_NAME, namespace)
        while await _accepted(client, refused):  # noqa: ASYNC110 - as above
            await asyncio.sleep(PROBE_SECONDS)

    def _configurations(self) -> list[tuple[Resource, Json]]:
        """The names sort as the real ones do."""
        return [
            (MUTATING_WEBHOOKS, self._configuration(MUTATING, "mjobset.kb.io", MUTATE, ["CREATE"])),
            (VALIDATING_WEBHOOKS, self._configuration(VALIDATING, "vjobset.kb.io", VALIDATE, ["CREATE", "UPDATE"])),
        ]

    def _configuration(self, name: str, webhook: str, path: str, operations: list[str]) -> Json:
        rule = {
            "apiGroups": [names.JOBSET_GROUP],
            "apiVersions": [names.JOBSET_VERSION],
            "operations": operations,
            "resources": [JOBSETS.plural],
        }
        client: Json = {"caBundle": base64.b64encode(self._identity.ca_pem).decode()}
        if self._service is None:
            client["url"] = self._url + path
        else:
            client["service"] = {"namespace": self._service[0], "name": self._service[1], "path": path}
        hook: Json = {
            "name": webhook,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": client,
            "rules": [rule],
        }
        if self._only:
            hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self._only}}
            name = f"{name}-{self._only}"
        return {"metadata": {"name": name}, "webhooks": [hook]}


async def _accepted(client: Client, body: Json) -> bool:
    try:
        await client.create(JOBSETS, body, dry_run=True)
    except ApiError as error:
        if error.status == 422 and "vjobset.kb.io" in error.message:
            return False
        raise
    return True


def _handler(review: Callable[[Json], Json]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(http: web.Request) -> web.Response:
        request = (await http.json())["request"]
        response = {"uid": request["uid"], **review(request)}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.json_response(body)

    return handle


def mutate(request: Json) -> Json:
    """An admission request to its response: the defaults as a JSON patch."""
    operations = default_operations(request["object"])
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def validate(request: Json) -> Json:
    """An admission request to its response: 422 Invalid with every field that is wrong."""
    new = request["object"]
    found = _name_causes(new) if request["operation"] == "CREATE" else _update_causes(new, request["oldObject"])
    if not found:
        return {"allowed": True}
    name = new["metadata"].get("name", "")
    text = ", ".join(f"{field}: {message}" for field, message in found)
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in found]
    status = {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'JobSet.{names.JOBSET_GROUP} "{name}" is invalid: {text}',
        "details": {"name": name, "group": names.JOBSET_GROUP, "kind": "JobSet", "causes": causes},
    }
    return {"allowed": False, "status": status}


# --- Defaults ---------------------------------------------------------------------------------------------------------


def default_operations(jobset: Json) -> list[Json]:
    """The JSON patch that adds the defaults of a new JobSet."""
    spec = jobset["spec"]
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    found = [
        *_missing(spec, "/spec", {"successPolicy": {"operator": "All"}}),
        *_missing(spec, "/spec", {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}),
        *(
            _missing(spec, "/spec", {"network": network})
            if spec.get("network") is None
            else _missing(spec["network"], "/spec/network", network)
        ),
    ]
    for index, job in enumerate(spec.get("replicatedJobs") or ()):
        path, job_spec = f"/spec/replicatedJobs/{index}/template/spec", job["template"]["spec"]
        found += _missing(job_spec, path, {"completionMode": "Indexed"})
        found += _missing(job_spec["template"]["spec"], f"{path}/template/spec", {"restartPolicy": "OnFailure"})
        found += _empty_members(job["template"], f"/spec/replicatedJobs/{index}/template")
    for index, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or ()):
        found += _missing(rule, f"/spec/failurePolicy/rules/{index}", {"name": f"failurePolicyRule{index}"})
    return found


def _empty_members(template: Json, path: str) -> list[Json]:
    """Members that Go's types write even when they are empty: the real webhook answers with the whole typed object."""
    pods, under = template["spec"]["template"], f"{path}/spec/template"
    found = [*_missing(template, path, {"metadata": {}}), *_missing(pods, under, {"metadata": {}})]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pods["spec"].get(kind) or ()):
            found += _missing(container, f"{under}/spec/{kind}/{index}", {"resources": {}})
    return found


def _missing(where: Json, path: str, wanted: Json) -> list[Json]:
    return [
        {"op": "add", "path": f"{path}/{key}", "value": value}
        for key, value in wanted.items()
        if where.get(key) in (None, "")
    ]


# --- Rules ------------------------------------------------------------------------------------------------------------

Cause = tuple[str, str]
"""(field, message)."""


def _name_causes(jobset: Json) -> list[Cause]:
    """Names of pods must fit 63 characters: six are the random suffix."""
    meta = jobset["metadata"]
    stem = meta.get("name") or meta.get("generateName", "") + "x" * 5
    found: list[Cause] = []
    for index, job in enumerate(jobset["spec"].get("replicatedJobs") or ()):
        last = max(0, (job["template"]["spec"].get("completions") or 1) - 1)
        longest = f"{stem}-{job['name']}-{max(0, job.get('replicas', 1) - 1)}-{last}"
        if len(longest) + 6 > LONGEST_NAME:
            why = f"Invalid value: {longest!r}: pod names would exceed {LONGEST_NAME} characters"
            found.append((f"spec.replicatedJobs[{index}].name", why))
    return found


def _update_causes(new: Json, old: Json) -> list[Cause]:
    """ReplicatedJobs are immutable, but the size of Indexed Jobs, and while suspended what scheduling needs."""
    fresh, stored = new["spec"], old["spec"]
    jobs = copy.deepcopy(fresh.get("replicatedJobs") or [])
    before = {job["name"]: job for job in stored.get("replicatedJobs") or ()}
    loose = bool(fresh.get("suspend")) or bool(stored.get("suspend"))
    found: list[Cause] = []
    for index, job in enumerate(jobs):
        was = before.get(job["name"])
        if was is None:
            continue
        found += _resize_causes(job["template"]["spec"], was["template"]["spec"], f"spec.replicatedJobs[{index}]")
        if loose:
            _ignore_scheduling(job["template"]["spec"]["template"], was["template"]["spec"]["template"])
    if _typed(jobs) != _typed(stored.get("replicatedJobs") or []):
        found.append(("spec.replicatedJobs", "Invalid value: field is immutable"))
    if fresh.get("managedBy") != stored.get("managedBy"):
        found.append(("spec.managedBy", f"Invalid value: {fresh.get('managedBy')!r}: field is immutable"))
    return found


def _resize_causes(spec: Json, old: Json, path: str) -> list[Cause]:
    """Check a change of an Indexed Job's size, then restore the old size so that it is no difference."""
    if spec.get("completionMode") != "Indexed":
        return []
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    changed = (parallelism, completions) != (old.get("parallelism"), old.get("completions"))
    for key in ("parallelism", "completions"):
        _restore(spec, old, key)
    if not changed or None in (parallelism, completions) or parallelism == completions:
        return []
    return [(f"{path}.template.spec.completions", f"Invalid value: {completions}: must be equal to parallelism")]


def _ignore_scheduling(template: Json, old: Json) -> None:
    meta = template.setdefault("metadata", {})
    for key in ("labels", "annotations"):
        _restore(meta, old.get("metadata") or {}, key)
    for key in _SCHEDULING:
        _restore(template["spec"], old["spec"], key)


def _restore(where: Json, old: Json, key: str) -> None:
    where.pop(key, None)
    if key in old:
        where[key] = old[key]


def _typed(value: Any) -> Any:
    """As Go's types compare it: null, an empty list, an empty string and no value are the same."""
    if isinstance(value, dict):
        typed = {key: _typed(item) for key, item in value.items()}
        return {key: item for key, item in typed.items() if not _absent(key, item)}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return value


def _absent(key: str, value: Any) -> bool:
    return value is None or value in ([], "") or (value == {} and key in _EMPTY_IS_ABSENT)


# --- Certificate ------------------------------------------------------------------------------------------------------

_VALIDITY = timedelta(days=365)
_CLOCK_SKEW = timedelta(days=1)
_USAGE = x509.KeyUsage(
    digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's TLS context and the PEM of the CA that clients have to trust."""

    context: ssl.SSLContext
    ca_pem: bytes


def server_identity(host: str) -> ServerIdentity:
    """For a DNS name or an IP address; a new key at every call."""
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_USAGE, critical=True)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads files only.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.pem"
        file.touch(mode=0o600)
        file.write_bytes(pem + private)
        context.load_cert_chain(file)
    return ServerIdentity(context, pem)
