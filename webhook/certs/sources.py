"""What is to be published and served, by whoever knows: see own_ca.py and brought.py."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webhook.certs.ca_injector import InjectedCas
from webhook.certs.pem import KeyPair

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class DesiredCertificate:
    """What should be published and served."""

    pair: KeyPair | None
    bundle: bytes | None
    """None: whoever keeps the caBundle is not us."""
    problem: str | None = None
    """What could not be done, and can wait."""


class CertSource(Protocol):
    """Either one."""

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """Raises LostRace, ApiError and Unreachable."""
