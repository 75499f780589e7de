"""What is to be published and served, by whoever knows: see own_ca.py and brought.py."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webhook.pem import Pair
from webhook.publish import Live

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Offer:
    """What should be published and served."""

    pair: Pair | None
    bundle: bytes | None
    """None: whoever keeps the caBundle is not us."""
    trouble: str | None = None
    """What could not be done, and can wait."""


class Source(Protocol):
    """Either one."""

    async def offer(self, live: Live) -> Offer:
        """Raises LostRace, ApiError and Unreachable."""
