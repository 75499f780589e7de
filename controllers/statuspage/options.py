"""Where the page listens: an address that other hosts can reach needs a certificate."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobset_gate.kube.access import is_loopback
from jobset_gate.timeline.summary import Prices

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How to serve the page. Port 0 takes a free one."""

    port: int
    address: str = LOOPBACK
    """127.0.0.1 can be reached by `kubectl port-forward` alone, which ends in the pod's own loopback."""
    certificate: Path | None = None
    key: Path | None = None
    prices: Prices = field(default_factory=dict)

    @property
    def tls(self) -> bool:
        """Whether it serves HTTPS."""
        return self.certificate is not None and self.key is not None

    @property
    def local(self) -> bool:
        """Whether only the pod itself can reach it."""
        return is_loopback(self.address)

    @property
    def problem(self) -> str:
        """Why these options are refused; "" if they are not."""
        if (self.certificate is None) != (self.key is None):
            return "the status page needs both pageTlsCert and pageTlsKey, or neither"
        if not self.local and not self.tls:
            return (
                f"the status page may not listen on {self.address} without TLS, since viewers send it their tokens:"
                f" set pageTlsCert and pageTlsKey, or leave pageAddress at {LOOPBACK} and use kubectl port-forward"
            )
        return ""
