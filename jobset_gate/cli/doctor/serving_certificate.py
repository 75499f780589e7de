"""The certificates that the webhook serves with, where somebody else keeps them: cert-manager, or whoever brought them.

Those that we sign ourselves live in the webhook's memory and are renewed there; nobody outside can see them.
"""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.deployments import webhooks
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown, warning
from jobset_gate.kube.resources import SECRETS
from jobset_gate.objects.unstructured import as_list, nested
from webhook.certs.pem import certificates

SOON: Final = timedelta(days=7)
_REMEDY: Final = "with cert-manager see its Certificate; otherwise write a new one into the Secret"


async def check(patient: ClusterReader) -> list[Finding]:
    """Nothing to say where the webhook has its certificates from itself."""
    found: list[Finding] = []
    for deployment in await webhooks(patient):
        namespace = str(nested(deployment, "metadata", "namespace"))
        for volume in as_list(nested(deployment, "spec", "template", "spec", "volumes")):
            name = nested(volume, "secret", "secretName")
            if isinstance(name, str):
                found.append(await _found(patient, name, namespace))
    return found


async def _found(patient: ClusterReader, name: str, namespace: str) -> Finding:
    what = f"the webhook's certificate in Secret {namespace}/{name}"
    try:
        secret = await patient.get_object(SECRETS, name, namespace)
    except NotReadable as no:
        return unknown(what, str(no), "ask somebody who may how long it is valid")
    if secret is None:
        return error(f"{what} is missing", "the webhook's pods cannot start without it", _REMEDY)
    text = nested(secret, "data", "tls.crt")
    try:
        leaf = next(iter(certificates(b64decode(text))), None) if isinstance(text, str) else None
    except ValueError:
        leaf = None
    if leaf is None:
        return error(f"{what} cannot be read", "its key tls.crt holds no certificate", _REMEDY)
    return judged(what, leaf, datetime.now(UTC))


def judged(what: str, leaf: x509.Certificate, now: datetime) -> Finding:
    """By its dates."""
    until, life = leaf.not_valid_after_utc, leaf.not_valid_after_utc - leaf.not_valid_before_utc
    told = f"made {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, valid until {until:%Y-%m-%d %H:%M} UTC"
    if not leaf.not_valid_before_utc <= now < until:
        return error(f"{what} is not valid now", told, _REMEDY)
    if until - now < min(SOON, life / 6):
        return warning(f"{what} ends soon", told, _REMEDY)
    return ok(f"{what} is valid", told)
