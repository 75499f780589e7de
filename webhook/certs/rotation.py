"""When our CA is created, replaced and removed: pure rules.

A CA is published before it signs: the next one is in caBundle with the present one, and signs only when every API
server has had time to read it. The former one stays in caBundle until its last certificate has expired. If the Secret
is lost, CAs in caBundle stay trusted in the same way.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate import names
from webhook.certs import ca
from webhook.certs.ca import CertificateAuthority, fingerprint, has_expired, is_due, joined

MOST_TAKEN_OVER: Final = 8
"""CAs that are taken over from a caBundle, which must not grow when a Secret is lost again and again."""


@dataclass(frozen=True, slots=True)
class CaSecretContents:
    signers: tuple[CertificateAuthority, ...]
    """CAs with their keys: the one in use, then (during a rotation) the next one."""
    trusted: tuple[x509.Certificate, ...]
    """All CAs of caBundle: the signers, and former ones while certificates of theirs may be served."""
    previous_until: datetime | None = None
    """How long former CAs are needed; None: as long as they are valid."""

    @property
    def bundle(self) -> bytes:
        return joined(self.trusted)


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """Lifetimes, and how long an API server may take to read a change."""

    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=7)
    settling: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class RotationSnapshot:
    """The input of the rules."""

    now: datetime
    contents: CaSecretContents | None
    """Of the Secret; None if it has no usable contents."""
    live: tuple[x509.Certificate, ...]
    """The CAs that are in any caBundle."""
    settled: frozenset[str]
    """Fingerprints of the CAs that have been in every caBundle for the settling time."""
    policy: RotationPolicy

    def new_ca(self) -> CertificateAuthority:
        name = f"{names.PROGRAM} CA {self.now:%Y-%m-%dT%H:%M:%S.%fZ}"
        return ca.create(name, now=self.now, life=self.policy.ca_life)

    @property
    def until(self) -> datetime:
        """A replica may sign with the old CA until it has read the change, hence more than a certificate's life."""
        return self.now + self.policy.leaf_life + 2 * self.policy.settling


@dataclass(frozen=True, slots=True)
class RotationChange:
    """The desired contents of the Secret, and why."""

    why: str
    contents: CaSecretContents


def change(seen: RotationSnapshot) -> RotationChange | None:
    """The first change that is due; None if there is none."""
    contents = seen.contents
    if contents is None or all(has_expired(one.certificate, seen.now) for one in contents.signers):
        return _made(seen)
    return next((found for rule in RULES if (found := rule(contents, seen)) is not None), None)


def _made(seen: RotationSnapshot) -> RotationChange:
    """Without a valid signer: a new CA, in addition to those that are trusted already."""
    new = seen.new_ca()
    valid = dict.fromkeys(one for one in seen.live if not has_expired(one, seen.now))
    kept = sorted(valid, key=lambda one: one.not_valid_before_utc)
    why = "there was no CA" if seen.contents is None else "the CA had expired"
    trusted = (new.certificate, *kept[-MOST_TAKEN_OVER:])
    return RotationChange(why, CaSecretContents((new,), trusted, seen.until if kept else None))


def _dropped_signer(contents: CaSecretContents, seen: RotationSnapshot) -> RotationChange | None:
    """An expired signer is dropped; the next one, if valid, takes its place at once."""
    valid = tuple(one for one in contents.signers if not has_expired(one.certificate, seen.now))
    if len(valid) == len(contents.signers):
        return None
    return RotationChange("a CA had expired", replace(contents, signers=valid))


def _followed(contents: CaSecretContents, seen: RotationSnapshot) -> RotationChange | None:
    """After two thirds of its life: the next CA is created and published."""
    if len(contents.signers) > 1 or not is_due(contents.signers[0].certificate, seen.now):
        return None
    new = seen.new_ca()
    return RotationChange(
        "the next CA is published before it is used",
        replace(contents, signers=(*contents.signers, new), trusted=(*contents.trusted, new.certificate)),
    )


def _used(contents: CaSecretContents, seen: RotationSnapshot) -> RotationChange | None:
    """The next CA has been in caBundle for the settling time: it signs, and the old key is dropped."""
    if len(contents.signers) < 2 or fingerprint(contents.signers[1].certificate) not in seen.settled:
        return None
    new = contents.signers[1]
    rest = (one for one in contents.trusted if one != new.certificate)
    return RotationChange("the next CA is used", CaSecretContents((new,), (new.certificate, *rest), seen.until))


def _forgotten(contents: CaSecretContents, seen: RotationSnapshot) -> RotationChange | None:
    """A former CA without valid certificates is removed."""
    signing = {one.certificate for one in contents.signers}
    over = contents.previous_until is not None and seen.now >= contents.previous_until
    needed = tuple(one for one in contents.trusted if one in signing or (not over and not has_expired(one, seen.now)))
    if needed == contents.trusted:
        return None
    until = contents.previous_until if len(needed) > len(signing) else None
    return RotationChange("an old CA is not needed any more", replace(contents, trusted=needed, previous_until=until))


RULES: Final = (_dropped_signer, _followed, _used, _forgotten)


class FirstSeen:
    """Since when each key has been observed without a gap."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def observe(self, found: Iterable[str], now: datetime) -> None:
        """These keys are there now, and no others."""
        self._since = {each: self._since.get(each, now) for each in found}

    def seen_for(self, life: timedelta, now: datetime) -> frozenset[str]:
        """The keys that have been there for at least `life`."""
        return frozenset(each for each, since in self._since.items() if now - since >= life)
