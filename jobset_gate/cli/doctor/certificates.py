"""The CAs in caBundle, and the certificates that the webhook serves: their dates."""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography import x509

from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, ok, unknown, warning, webhooks
from jobset_gate.cli.doctor.webhook_configurations import ours
from jobset_gate.kube.resources import SECRETS
from jobset_gate.objects.unstructured import Json, as_list, nested
from webhook.certs.ca import certificates

SOON: Final = timedelta(days=7)
"""As long as one of our serving certificates lives; our own CA is followed by the next long before."""
_RENEW: Final = "restart the webhook's Deployment and read its log; with cert-manager see its Certificate"


async def bundles(reader: ClusterReader) -> list[Finding]:
    """What stands in caBundle."""
    now = datetime.now(UTC)
    found = [(name, hook) for name, hook in await ours(reader) if nested(hook, "clientConfig", "caBundle")]
    return [judge_bundle(name, bundle(hook), now) for name, hook in found]


def judge_bundle(name: str, trusted: tuple[x509.Certificate, ...], now: datetime) -> Finding:
    """Of what one configuration trusts."""
    valid = [it for it in trusted if it.not_valid_before_utc <= now < it.not_valid_after_utc]
    if not trusted:
        return error(f"the caBundle of {name} holds no certificate", "API servers trust nobody there", _RENEW)
    if not valid:
        ended = max(it.not_valid_after_utc for it in trusted)
        why = (
            f"the last certificate in it is valid until {ended:%Y-%m-%d %H:%M} UTC, and it is {now:%Y-%m-%d %H:%M} now"
        )
        return error(f"the caBundle of {name} holds no certificate that is valid now", why, _RENEW)
    last = max(valid, key=lambda it: it.not_valid_after_utc)
    age, left = now - last.not_valid_before_utc, last.not_valid_after_utc - now
    dates = f"made {_days(age)} ago, valid until {last.not_valid_after_utc:%Y-%m-%d}"
    if left < SOON:
        return warning(f"the CA that {name} trusts ends in {_days(left)}", dates, _RENEW)
    return ok(f"the CA that {name} trusts is valid", dates)


def bundle(hook: Json) -> tuple[x509.Certificate, ...]:
    """What a webhook's caBundle holds, as far as it can be read."""
    return _decoded(nested(hook, "clientConfig", "caBundle"))


def _decoded(text: Any) -> tuple[x509.Certificate, ...]:
    """The certificates in base64 of PEM; none where it is anything else."""
    try:
        return certificates(b64decode(text)) if isinstance(text, str) else ()
    except ValueError:
        return ()


def _days(span: timedelta) -> str:
    return f"{span.days} day{'' if span.days == 1 else 's'}" if span.days else f"{span.seconds // 3600} hours"


_RENEW_SERVING: Final = "with cert-manager see its Certificate; otherwise write a new one into the Secret"


async def serving(reader: ClusterReader) -> list[Finding]:
    """Nothing to say where the webhook has its certificates from itself."""
    found: list[Finding] = []
    for deployment in await webhooks(reader):
        namespace = str(nested(deployment, "metadata", "namespace"))
        for volume in as_list(nested(deployment, "spec", "template", "spec", "volumes")):
            name = nested(volume, "secret", "secretName")
            if isinstance(name, str):
                found.append(await _judge_secret(reader, name, namespace))
    return found


async def _judge_secret(reader: ClusterReader, name: str, namespace: str) -> Finding:
    what = f"the webhook's certificate in Secret {namespace}/{name}"
    try:
        secret = await reader.get_object(SECRETS, name, namespace)
    except NotReadable as no:
        return unknown(what, str(no), "ask a user with that right how long it is valid")
    if secret is None:
        return error(f"{what} is missing", "the webhook's pods cannot start without it", _RENEW_SERVING)
    chain = _decoded(nested(secret, "data", "tls.crt"))
    if not chain:
        return error(f"{what} cannot be read", "its key tls.crt holds no certificate", _RENEW_SERVING)
    return judge_serving(what, chain[0], datetime.now(UTC))


def judge_serving(what: str, leaf: x509.Certificate, now: datetime) -> Finding:
    """By its dates."""
    until, life = leaf.not_valid_after_utc, leaf.not_valid_after_utc - leaf.not_valid_before_utc
    dates = f"made {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, valid until {until:%Y-%m-%d %H:%M} UTC"
    if not leaf.not_valid_before_utc <= now < until:
        return error(f"{what} is not valid now", dates, _RENEW_SERVING)
    if until - now < min(SOON, life / 6):
        return warning(f"{what} ends soon", dates, _RENEW_SERVING)
    return ok(f"{what} is valid", dates)
