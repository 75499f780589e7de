"""Reads and writes the caBundle of the webhook configurations, and owns no other field of them."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Invalid, NotFound, is_stale_patch
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.objects.unstructured import Json
from webhook.certs.ca import certificates, decoded, fingerprint
from webhook.registration import MUTATING, VALIDATING

CONFIGURATIONS: Final = ((MUTATING_WEBHOOKS, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING))
"""Those of every installation; without them the webhook is not ready."""
OF_PODS: Final = ((MUTATING_WEBHOOKS, names.POD_WEBHOOK),)
"""While pod groups are enabled. An uninstallation deletes it first; JobSets are still sent then."""
OF_BARRIER_PODS: Final = ((MUTATING_WEBHOOKS, names.BARRIER_POD_WEBHOOK),)
"""While start groups are enabled; the same holds for it."""
MANAGER: Final = f"{names.FIELD_MANAGER}-webhook"


class WriteConflict(Exception):
    """The object has changed between our read and our write: read again."""


@dataclass(frozen=True, slots=True)
class WebhookConfiguration:
    """One webhook configuration; without a version it does not exist."""

    resource: Resource
    name: str
    version: str
    bundles: tuple[bytes, ...]
    """The caBundle of each webhook."""

    @property
    def bundle(self) -> bytes:
        """The caBundle of all its webhooks; empty if they differ."""
        return self.bundles[0] if len(set(self.bundles)) == 1 else b""


@dataclass(frozen=True, slots=True)
class InjectedCas:
    """The webhook configurations of an API server."""

    configurations: tuple[WebhookConfiguration, ...]
    """Without optional ones that do not exist."""

    @property
    def missing_reason(self) -> str | None:
        """Why no certificate can be trusted: a configuration is missing, or has no webhooks."""
        for one in self.configurations:
            if not one.version:
                return f"there is no {one.resource.kind} {one.name}"
            if not one.bundles:
                return f"{one.resource.kind} {one.name} has no webhooks"
        return None

    @property
    def bundles(self) -> Mapping[str, bytes]:
        """Each configuration's caBundle by its name."""
        return {one.name: one.bundle for one in self.configurations}

    @property
    def in_any(self) -> tuple[x509.Certificate, ...]:
        """The CAs that are in any caBundle."""
        return tuple(it for one in self.configurations for text in one.bundles for it in certificates(text))

    @property
    def in_all(self) -> frozenset[str]:
        """Fingerprints of the CAs that are in every caBundle."""
        sets = [{fingerprint(it) for it in certificates(text)} for one in self.configurations for text in one.bundles]
        return frozenset(set.intersection(*sets)) if sets and self.missing_reason is None else frozenset()


class CaInjector:
    """The configurations of one installation."""

    def __init__(
        self,
        client: Client,
        which: Sequence[tuple[Resource, str]] = CONFIGURATIONS,
        optional: Sequence[tuple[Resource, str]] = (),
    ) -> None:
        """`optional`: configurations that need not exist."""
        self._client, self._optional = client, frozenset(optional)
        self.configurations = (*which, *optional)

    async def read(self) -> InjectedCas:
        """Raises ApiError other than NotFound, and Unreachable."""
        found = [await self._one(*each) for each in self.configurations]
        return InjectedCas(tuple(it for it in found if it.version or (it.resource, it.name) not in self._optional))

    async def write(self, before: InjectedCas, bundle: bytes) -> InjectedCas:
        """Set `bundle` where it differs; raises WriteConflict if a configuration has changed."""
        return InjectedCas(tuple([await self._written(one, bundle) for one in before.configurations]))

    async def _one(self, resource: Resource, name: str) -> WebhookConfiguration:
        try:
            return _configuration(resource, await self._client.get(resource, name))
        except NotFound:
            return WebhookConfiguration(resource, name, "", ())

    async def _written(self, one: WebhookConfiguration, bundle: bytes) -> WebhookConfiguration:
        operations = patch(one, bundle)
        if not operations:
            return one
        try:
            stored = await self._client.patch(
                one.resource, one.name, body=operations, patch=PatchType.JSON, field_manager=MANAGER
            )
        except (Conflict, Invalid, NotFound) as error:
            if not is_stale_patch(error):
                raise
            raise WriteConflict(one.name) from error
        return _configuration(one.resource, stored)


def patch(one: WebhookConfiguration, bundle: bytes) -> list[Json]:
    """The JSON patch for this version of the configuration; empty if nothing differs."""
    value = b64encode(bundle).decode()
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": value}
        for index, found in enumerate(one.bundles)
        if found != bundle
    ]
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": one.version}
    return [unchanged, *changes] if changes else []


def _configuration(resource: Resource, body: Json) -> WebhookConfiguration:
    bundles = tuple(decoded(hook["clientConfig"].get("caBundle")) for hook in body.get("webhooks") or ())
    return WebhookConfiguration(resource, body["metadata"]["name"], body["metadata"]["resourceVersion"], bundles)
