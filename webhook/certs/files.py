"""A certificate that somebody else makes: in files, with its CA beside it if that is for us to publish."""

import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from webhook.certs.ca import has_expired
from webhook.certs.ca_injector import InjectedCas
from webhook.certs.pem import KeyPair, certificates, fingerprint, joined
from webhook.certs.sources import DesiredCertificate, Now

OVERLAP: Final = timedelta(minutes=10)
"""How long CAs that are not in our file stay published: other replicas may have their mounted files changed that much
earlier or later, and may be served under the other CA."""


class FileSource:
    """Certificate and key are in files; the CA too if it is for us to publish."""

    def __init__(self, read: Callable[[], KeyPair], ca: Path | None, now: Now) -> None:
        self._read, self._ca, self._now = read, ca, now
        self._others: dict[str, datetime] = {}

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """What the files hold now; a file that is missing or torn for a moment is no reason to give anything up."""
        try:
            return DesiredCertificate(self._read(), self._bundle(live))
        except (OSError, ssl.SSLError) as problem:
            return DesiredCertificate(None, None, f"the certificate's files cannot be used: {problem}")

    def _bundle(self, live: InjectedCas) -> bytes | None:
        """Ours, and for a while those that other replicas may still need or need already."""
        if self._ca is None:
            return None
        ours = certificates(self._ca.read_bytes())
        if not ours:
            raise ssl.SSLError(f"no certificate in {self._ca}")
        now, known = self._now(), {fingerprint(one) for one in ours}
        others = {fingerprint(one): one for one in live.in_any if not has_expired(one, now)}
        self._others = {each: self._others.get(each, now) for each in others if each not in known}
        kept = [others[each] for each, since in self._others.items() if now - since < OVERLAP]
        return joined(sorted({*ours, *kept}, key=fingerprint))
