"""The certificate controller: writes caBundle, rolls the serving certificate over, and decides readiness.

Each reconcile reads everything again; a watch only starts it sooner. So whatever is deleted, wiped, edited or expired
is repaired by the next reconcile, and a replica that was away for long does no harm.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import structlog

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, KubeError
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import object_informer
from webhook.certs.ca import is_valid
from webhook.certs.ca_injector import CaInjector, InjectedCas, WriteConflict
from webhook.certs.serving import Rollover, issuer
from webhook.certs.sources import CertSource, DesiredCertificate
from webhook.metrics import WebhookMetrics

INTERVAL_SECONDS: Final = 10.0
"""The longest time between two reconciles."""
SPACING_SECONDS: Final = 0.5
"""The shortest: another client may write the same fields."""
_ATTEMPTS: Final = 5

log = structlog.get_logger("webhook.certificates")


class CertificateController:
    """`run()` while the server runs; `not_ready_reason()` is its readiness."""

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
        extra_watches: Sequence[tuple[Resource, str | None, str]] = (),
    ) -> None:
        """`extra_watches`: (resource, namespace, name) of what the source depends on."""
        self._client, self._injector, self._source, self._rollover = client, injector, source, rollover
        self._metrics, self._now, self._trusted = metrics, now, metrics.add_trust_gauge()
        self._interval, self._spacing = interval, min(SPACING_SECONDS, interval / 10)
        self._watched = [*((resource, None, name) for resource, name in injector.configurations), *extra_watches]
        self._live: InjectedCas | None = None
        self._untrusted: str | None = "the webhook configurations have not been read yet"
        self._problem: str | None = None

    def not_ready_reason(self) -> str | None:
        """Why no API server should call this webhook; None: its certificate is trusted."""
        if self._untrusted is not None:
            return self._untrusted if self._problem is None else f"{self._untrusted}; {self._problem}"
        valid = all(is_valid(one, self._now()) for one in self._rollover.slot.chain)
        return None if valid else "the serving certificate has run out"

    async def run(self) -> None:
        """Until cancelled."""
        wake = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for resource, namespace, name in self._watched:
                informer = object_informer(
                    self._client, resource, name, lambda _: wake.set(), namespace=namespace, on_problem=_log_problem
                )
                tasks.create_task(informer.run(), name=f"watch {informer.resource.plural}")
            while True:
                wake.clear()
                await self.reconcile()
                await asyncio.sleep(self._spacing)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(self._interval - self._spacing, 0)):
                        await wake.wait()

    async def reconcile(self) -> None:
        """A lost race is tried again at once. A failure is logged and counted; the next reconcile retries."""
        try:
            for _ in range(_ATTEMPTS):
                with suppress(WriteConflict):
                    return await self._attempt()
            self._failed("others change the certificate's objects all the time")
        except KubeError as problem:
            self._failed(f"{problem}")
        except Exception as problem:  # any other error: the present certificate is served on
            log.exception("the certificate could not be reconciled")
            self._failed(f"{type(problem).__name__}: {problem}")

    async def _attempt(self) -> None:
        live = self._live = await self._injector.read()
        desired = await self._source.desired(live)
        problems = [desired.problem] if desired.problem else []
        try:
            live = self._live = await self._publish(live, desired)
        except ApiError as refused:
            problems.append(f"the caBundle cannot be written: {refused}")
        try:
            self._roll_over(live, desired)
        except ssl.SSLError as problem:
            self._metrics.certificate_reloads.labels("failed").inc()
            problems.append(f"the new certificate cannot be used, serving the last good one: {problem}")
        self._update_readiness(live)
        self._report("; ".join(problems) or None)

    async def _publish(self, live: InjectedCas, desired: DesiredCertificate) -> InjectedCas:
        if desired.bundle is None or live.missing_reason:
            return live
        now = await self._injector.write(live, desired.bundle)
        if now != live:
            self._metrics.certificate_changes.labels("ca_bundle").inc()
            log.info("caBundle written", configurations=list(now.bundles))
        return now

    def _roll_over(self, live: InjectedCas, desired: DesiredCertificate) -> None:
        if desired.pair is not None and self._rollover.roll_over(desired.pair, live.bundles, self._now()):
            self._metrics.certificate_reloads.labels("ok").inc()
            expires = self._rollover.slot.first_to_expire.not_valid_after_utc
            log.info("certificate in use", expires=f"{expires:%Y-%m-%dT%H:%M:%SZ}")

    def _update_readiness(self, live: InjectedCas) -> None:
        reason = live.missing_reason or self._rollover.untrusted_reason(live.bundles, self._now())
        if reason != self._untrusted:
            log.info("the certificate is trusted" if reason is None else "not trusted", why=reason)
        self._untrusted = reason
        self._trusted.set(reason is None)
        ca = issuer(self._rollover.slot.chain, live.bundles)
        if ca is not None:
            self._metrics.certificate_expiry.labels("ca").set(ca.not_valid_after_utc.timestamp())
            self._metrics.certificate_issued.labels("ca").set(ca.not_valid_before_utc.timestamp())

    def _failed(self, problem: str) -> None:
        """The last reading of the configurations counts on: an unreachable API server calls no webhook."""
        if self._live is not None:
            self._update_readiness(self._live)
        self._report(problem)

    def _report(self, problem: str | None) -> None:
        if problem is not None:
            self._metrics.certificate_check_failures.inc()
            if problem != self._problem:
                log.warning("the certificate cannot be kept up to date", problem=problem)
        self._problem = problem


def _log_problem(problem: WatchProblem) -> None:
    log.debug("watch", resource=problem.resource.plural, kind=str(problem.kind), detail=problem.detail)
