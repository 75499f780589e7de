"""Keeps the door's certificate trusted: looks, publishes, hands over, and says whether the door may be asked.

Each round reads everything anew; a watch only says when to look sooner. So nothing that is lost, wiped, edited or has
run out stays so for longer than a round takes, and a replica that was away for long does no harm.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, KubeError
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from webhook.certs import verify
from webhook.certs.ca import is_valid
from webhook.certs.ca_injector import CaInjector, InjectedCas, WriteConflict
from webhook.certs.rollover import Rollover
from webhook.certs.sources import CertSource, DesiredCertificate
from webhook.metrics import WebhookMetrics

INTERVAL_SECONDS: Final = 10.0
"""The longest time between two rounds."""
SPACING_SECONDS: Final = 0.5
"""The shortest: somebody may fight with us about the same field."""
_ATTEMPTS: Final = 5

log = structlog.get_logger("webhook.certificates")


class CertificateController:
    """`run()` beside the server; `why_not()` is its readiness."""

    def __init__(
        self,
        client: Client,
        injector: CaInjector,
        source: CertSource,
        rollover: Rollover,
        *,
        metrics: WebhookMetrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        interval: float = INTERVAL_SECONDS,
        spacing: float = SPACING_SECONDS,
        extra_watches: Sequence[tuple[Resource, str | None, str]] = (),
    ) -> None:
        """`also_watch`: (resource, namespace, name) of what the source depends on."""
        self._client, self._published, self._source, self._handover = client, injector, source, rollover
        self._metrics, self._now, self._trusted = metrics, now, metrics.add_trust_gauge()
        self._interval, self._spacing = interval, spacing
        self._watched = [*((resource, None, name) for resource, name in injector.configurations), *extra_watches]
        self._live: InjectedCas | None = None
        self._verdict: str | None = "the webhook configurations have not been read yet"
        self._trouble: str | None = None

    def not_ready_reason(self) -> str | None:
        """Why no API server should ask this door; None: its certificate is trusted."""
        if self._verdict is not None:
            return self._verdict if self._trouble is None else f"{self._verdict}; {self._trouble}"
        valid = all(is_valid(one, self._now()) for one in self._handover.slot.chain)
        return None if valid else "the serving certificate has run out"

    async def run(self) -> None:
        """For ever."""
        wake = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for informer in object_informers(self._client, self._watched, wake):
                tasks.create_task(informer.run(), name=f"watch {informer.resource.plural}")
            while True:
                wake.clear()
                await self._reconcile_logged()
                await asyncio.sleep(self._spacing)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(self._interval - self._spacing, 0)):
                        await wake.wait()

    async def reconcile(self) -> None:
        """Look once and do what is needed. Raises ApiError, Unreachable, and LostRace after several attempts."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._attempt()
            except WriteConflict:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _reconcile_logged(self) -> None:
        """A round that fails is said, counted and followed by the next one."""
        try:
            await self.reconcile()
        except (KubeError, WriteConflict) as problem:
            self._failed(f"{problem}" if isinstance(problem, KubeError) else f"{problem} changes all the time")
        except Exception as problem:  # whatever it trips over, the door goes on with the certificate that it has
            log.exception("looking after the certificate failed")
            self._failed(f"{type(problem).__name__}: {problem}")

    async def _attempt(self) -> None:
        live = self._live = await self._published.read()
        offer = await self._source.desired(live)
        troubles = [offer.problem] if offer.problem else []
        try:
            live = self._live = await self._publish(live, offer)
        except ApiError as refused:
            troubles.append(f"the caBundle cannot be written: {refused}")
        try:
            self._roll_over(live, offer)
        except ssl.SSLError as problem:
            self._metrics.certificate_reloads.labels("failed").inc()
            troubles.append(f"the new certificate cannot be used, serving the last good one: {problem}")
        self._update_readiness(live)
        self._report("; ".join(troubles) or None)

    async def _publish(self, live: InjectedCas, offer: DesiredCertificate) -> InjectedCas:
        if offer.bundle is None or live.missing_reason:
            return live
        now = await self._published.write(live, offer.bundle)
        if now != live:
            self._metrics.certificate_changes.labels("ca_bundle").inc()
            log.info("caBundle written", configurations=list(now.bundles))
        return now

    def _roll_over(self, live: InjectedCas, offer: DesiredCertificate) -> None:
        if offer.pair is not None and self._handover.roll_over(offer.pair, live.bundles, self._now()):
            self._metrics.certificate_reloads.labels("ok").inc()
            log.info("certificate in use", expires=f"{self._handover.slot.expires:%Y-%m-%dT%H:%M:%SZ}")

    def _update_readiness(self, live: InjectedCas) -> None:
        """What readiness and metrics say from now on."""
        verdict = live.missing_reason or self._handover.untrusted_reason(live.bundles, self._now())
        if verdict != self._verdict:
            log.info("the certificate is trusted" if verdict is None else "not trusted", why=verdict)
        self._verdict = verdict
        self._trusted.set(verdict is None)
        issuer = verify.issuer(self._handover.slot.chain, live.bundles)
        if issuer is not None:
            self._metrics.certificate_expiry.labels("ca").set(issuer.not_valid_after_utc.timestamp())
            self._metrics.certificate_issued.labels("ca").set(issuer.not_valid_before_utc.timestamp())

    def _failed(self, trouble: str) -> None:
        """What was trusted at the last look is taken to be so still: an API server that is away asks nobody."""
        if self._live is not None:
            self._update_readiness(self._live)
        self._report(trouble)

    def _report(self, trouble: str | None) -> None:
        if trouble is not None:
            self._metrics.certificate_check_failures.inc()
            if trouble != self._trouble:
                log.warning("the certificate cannot be looked after", problem=trouble)
        self._trouble = trouble


log = structlog.get_logger("webhook.certificates")


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    """Only that it has changed is of interest: no Secret is kept in memory here."""

    metadata: _Meta = _Meta()


def object_informers(
    client: Client, objects: Iterable[tuple[Resource, str | None, str]], wake: asyncio.Event
) -> list[Informer[_Object, str]]:
    """One informer for each (resource, namespace, name); `wake` is set at every change. Their run() is the caller's."""

    def changed(_: ObjectChange[str]) -> None:
        wake.set()

    return [
        Informer(
            client,
            WatchSource(
                resource,
                _Object,
                lambda it: it.metadata.resource_version,
                changed,
                namespace=namespace,
                field_selector=f"metadata.name={name}",
            ),
            on_problem=_say,
        )
        for resource, namespace, name in objects
    ]


def _say(problem: WatchProblem) -> None:
    log.debug("watch", resource=problem.resource.plural, kind=str(problem.kind), detail=problem.detail)
