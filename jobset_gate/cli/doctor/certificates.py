"""The dates of the CAs in caBundle, and of the certificates that the webhook serves from Secrets."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate.cli.doctor.check import ClusterReader, Finding, error, ok, warning, webhooks
from jobset_gate.cli.doctor.webhook_configurations import for_jobsets, for_pods, for_start_groups
from jobset_gate.kube.resources import SECRETS
from jobset_gate.objects.unstructured import as_list, nested
from webhook.certs.ca import certificates, decoded

SOON: Final = timedelta(days=7)
_RENEW: Final = "read the log of the webhook, which renews its own; with cert-manager see its Certificate"


async def bundles(reader: ClusterReader) -> list[Finding]:
    """What stands in caBundle."""
    hooks = [*await for_jobsets(reader), *await for_start_groups(reader), *await for_pods(reader)]
    found = [(name, nested(hook, "clientConfig", "caBundle")) for name, hook in hooks]
    return [judge(f"the CA that {name} trusts", certificates(decoded(text))) for name, text in found if text]


async def serving(reader: ClusterReader) -> list[Finding]:
    """Nothing to say where the webhook has its certificates from itself."""
    found: list[Finding] = []
    for deployment in await webhooks(reader):
        namespace = str(nested(deployment, "metadata", "namespace"))
        for volume in as_list(nested(deployment, "spec", "template", "spec", "volumes")):
            name = nested(volume, "secret", "secretName")
            if isinstance(name, str):
                secret = await reader.get_object(SECRETS, name, namespace)
                what = f"the webhook's certificate in Secret {namespace}/{name}"
                leaf = certificates(decoded(nested(secret, "data", "tls.crt")))[:1]
                found.append(judge(what, leaf))
    return found


def judge(what: str, made: Sequence[x509.Certificate]) -> Finding:
    """By the dates of that of them which is valid longest."""
    now = datetime.now(UTC)
    valid = [it for it in made if it.not_valid_before_utc <= now < it.not_valid_after_utc]
    if not valid:
        ends = ", ".join(f"{it.not_valid_after_utc:%Y-%m-%d %H:%M} UTC" for it in made)
        return error(f"{what} is not valid now", f"valid until {ends}" if ends else "there is no certificate", _RENEW)
    last = max(valid, key=lambda it: it.not_valid_after_utc)
    life, left = last.not_valid_after_utc - last.not_valid_before_utc, last.not_valid_after_utc - now
    dates = f"valid until {last.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return warning(f"{what} ends soon", dates, _RENEW) if left < min(SOON, life / 6) else ok(f"{what} is valid", dates)
