"""The CAs in caBundle, and the certificates that the webhook serves: their dates, and whether they fit together."""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable, webhooks
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown, warning
from jobset_gate.cli.doctor.webhook_configurations import FoundWebhook, ours
from jobset_gate.kube.resources import SECRETS
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from webhook.certs.ca import certificates
from webhook.certs.ca_secret import contents

SOON: Final = timedelta(days=7)
"""As long as one of our serving certificates lives; our own CA is followed by the next long before."""
_SERVICE: Final = "-webhook"
_RENEW: Final = "restart the webhook's Deployment and read its log; with cert-manager see its Certificate"


async def bundles(reader: ClusterReader) -> list[Finding]:
    """What stands in caBundle."""
    now = datetime.now(UTC)
    return [judge_bundle(name, bundle(hook), now) for name, hook in await _trusting(reader)]


async def secret(reader: ClusterReader) -> list[Finding]:
    """Whether the CA of our Secret is in caBundle."""
    found: list[Finding] = []
    for one in await _trusting(reader):
        if (place := _place(nested(one[1], "clientConfig", "service"))) is None:
            continue
        kept = await reader.get_object(SECRETS, place[1], place[0])
        stored = contents(as_map(nested(kept, "data")))
        if stored is not None:  # else the certificate is managed elsewhere
            found.append(_compared("/".join(place), stored.signers[0].certificate, one))
    return found


async def _trusting(reader: ClusterReader) -> list[FoundWebhook]:
    return [one for one in await ours(reader) if nested(one[1], "clientConfig", "caBundle")]


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


def _compared(secret: str, signing: x509.Certificate, trusting: FoundWebhook) -> Finding:
    name, hook = trusting
    if signing in bundle(hook):
        return ok(f"{name} trusts the CA of Secret {secret}")
    why = "what the webhook serves is signed by a CA that API servers do not know, so they refuse gated objects"
    return error(f"{name} does not trust the CA of Secret {secret}", why, _RENEW)


def _place(service: object) -> tuple[str, str] | None:
    """The Secret beside a Service that the chart has made."""
    namespace, name = nested(service, "namespace"), nested(service, "name")
    if not isinstance(namespace, str) or not isinstance(name, str) or not name.endswith(_SERVICE):
        return None
    return namespace, name.removesuffix(_SERVICE) + "-ca"


def bundle(hook: Json) -> tuple[x509.Certificate, ...]:
    """What a webhook's caBundle holds, as far as it can be read."""
    text = nested(hook, "clientConfig", "caBundle")
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
    text = nested(secret, "data", "tls.crt")
    try:
        leaf = next(iter(certificates(b64decode(text))), None) if isinstance(text, str) else None
    except ValueError:
        leaf = None
    if leaf is None:
        return error(f"{what} cannot be read", "its key tls.crt holds no certificate", _RENEW_SERVING)
    return judge_serving(what, leaf, datetime.now(UTC))


def judge_serving(what: str, leaf: x509.Certificate, now: datetime) -> Finding:
    """By its dates."""
    until, life = leaf.not_valid_after_utc, leaf.not_valid_after_utc - leaf.not_valid_before_utc
    dates = f"made {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, valid until {until:%Y-%m-%d %H:%M} UTC"
    if not leaf.not_valid_before_utc <= now < until:
        return error(f"{what} is not valid now", dates, _RENEW_SERVING)
    if until - now < min(SOON, life / 6):
        return warning(f"{what} ends soon", dates, _RENEW_SERVING)
    return ok(f"{what} is valid", dates)
