"""The caBundle of our webhook configurations: read, and written without owning anything else in them."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from webhook.certs.ca import certificates, fingerprint
from webhook.certs.ca_secret import MANAGER
from webhook.registration import MUTATING, VALIDATING

CONFIGURATIONS: Final = ((MUTATING_WEBHOOKS, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING))
"""Those of every installation; without them the webhook is not ready."""
OF_PODS: Final = ((MUTATING_WEBHOOKS, names.POD_WEBHOOK),)
"""While groups are enabled. An uninstallation takes this one away first, and JobSets go on being asked about."""
Json = dict[str, Any]


class WriteConflict(Exception):
    """Another has written between our read and our write: look again."""


@dataclass(frozen=True, slots=True)
class WebhookConfiguration:
    """One webhook configuration as it was read; without a version it does not exist."""

    resource: Resource
    name: str
    version: str
    bundles: tuple[bytes, ...]
    """The caBundle of each webhook in it."""

    @property
    def bundle(self) -> bytes:
        """What all of its webhooks trust; nothing if they differ."""
        return self.bundles[0] if len(set(self.bundles)) == 1 else b""


@dataclass(frozen=True, slots=True)
class InjectedCas:
    """The configurations as an API server has them."""

    configurations: tuple[WebhookConfiguration, ...]
    """But optional ones that do not exist: nobody asks us for those."""

    @property
    def missing_reason(self) -> str | None:
        """Why nobody can be trusted: there is no such configuration, or nothing in it."""
        for one in self.configurations:
            if not one.version:
                return f"there is no {one.resource.kind} {one.name}"
            if not one.bundles:
                return f"{one.resource.kind} {one.name} has no webhooks"
        return None

    @property
    def bundles(self) -> Mapping[str, bytes]:
        """By the configuration's name."""
        return {one.name: one.bundle for one in self.configurations}

    @property
    def in_any(self) -> tuple[x509.Certificate, ...]:
        """What stands in any of them."""
        return tuple(it for one in self.configurations for text in one.bundles for it in certificates(text))

    @property
    def in_all(self) -> frozenset[str]:
        """Fingerprints of what stands in all of them."""
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
        """`optional`: those that need not exist."""
        self._client, self._optional = client, frozenset(optional)
        self.configurations = (*which, *optional)

    async def read(self) -> InjectedCas:
        """Raises ApiError other than NotFound, and Unreachable."""
        found = [await self._one(*each) for each in self.configurations]
        return InjectedCas(tuple(it for it in found if it.version or (it.resource, it.name) not in self._optional))

    async def write(self, before: InjectedCas, bundle: bytes) -> InjectedCas:
        """Make `bundle` the caBundle of each that has another one; raises LostRace if one of them has changed."""
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
            if not _lost(error):
                raise
            raise WriteConflict(one.name) from error
        return _configuration(one.resource, stored)


def patch(one: WebhookConfiguration, bundle: bytes) -> list[Json]:
    """The JSON patch that makes it so, good for this version of the configuration only; empty if it is so already."""
    value = b64encode(bundle).decode()
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": value}
        for index, found in enumerate(one.bundles)
        if found != bundle
    ]
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": one.version}
    return [unchanged, *changes] if changes else []


def _lost(error: ApiError) -> bool:
    # A `test` that does not hold is answered with 422 and no causes; a value that is refused has them.
    return not isinstance(error, Invalid) or not error.details.get("causes")


def _configuration(resource: Resource, body: Json) -> WebhookConfiguration:
    bundles = tuple(_decoded(hook["clientConfig"].get("caBundle")) for hook in body.get("webhooks") or ())
    return WebhookConfiguration(resource, body["metadata"]["name"], body["metadata"]["resourceVersion"], bundles)


def _decoded(text: str | None) -> bytes:
    try:
        return b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
