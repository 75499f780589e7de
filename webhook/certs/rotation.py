"""When our CA is made, followed by another, and forgotten: rules, pure.

A CA is published before it is used: the one to follow stands in caBundle next to the one in use, and only when every
API server has had the time to read it there does it begin to sign. The one it follows stays in caBundle until the last
certificate that it signed has run out. Certificates that another CA has signed go on being trusted in the same way if
the Secret is lost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate import names
from webhook.certs import ca
from webhook.certs.ca import CertificateAuthority, fingerprint, has_expired, is_due
from webhook.certs.ca_secret import CaSecretContents

MOST_TAKEN_OVER: Final = 8
"""CAs that are taken over from a caBundle; a Secret that is lost again and again must not make it grow for ever."""


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """How long things live, and how long an API server may take to learn of a change."""

    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=7)
    settling: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class RotationSnapshot:
    """All that the rules look at."""

    now: datetime
    contents: CaSecretContents | None
    """Of the Secret; None if there is none that could be used."""
    live: tuple[x509.Certificate, ...]
    """What stands in a caBundle of ours now."""
    settled: frozenset[str]
    """Fingerprints of what has stood in all of them for the settling time."""


@dataclass(frozen=True, slots=True)
class RotationChange:
    """What the Secret should hold, and why."""

    why: str
    contents: CaSecretContents


Rule = Callable[[RotationSnapshot, RotationPolicy], RotationChange | None]


def change(seen: RotationSnapshot, terms: RotationPolicy) -> RotationChange | None:
    """The one thing to change now; None: all is as it should be."""
    return next((found for rule in RULES if (found := rule(seen, terms)) is not None), None)


def _made(seen: RotationSnapshot, terms: RotationPolicy) -> RotationChange | None:
    """Without a CA that may sign there is a new one, beside those that are trusted already."""
    if seen.contents is not None and not all(has_expired(one.certificate, seen.now) for one in seen.contents.signers):
        return None
    new = _new(seen, terms)
    kept = sorted(
        (one for one in seen.live if not has_expired(one, seen.now)), key=lambda one: one.not_valid_before_utc
    )
    trusted = (new.certificate, *_distinct(kept)[-MOST_TAKEN_OVER:])
    why = "there was no CA" if seen.contents is None else "the CA had expired"
    return RotationChange(why, CaSecretContents((new,), trusted, _until(seen, terms) if kept else None))


def _dropped_signer(seen: RotationSnapshot, _: RotationPolicy) -> RotationChange | None:
    """One that has expired signs nothing; the one to follow it (if it has not) takes its place at once."""
    contents = _contents(seen)
    valid = tuple(one for one in contents.signers if not has_expired(one.certificate, seen.now))
    if len(valid) == len(contents.signers):
        return None
    return RotationChange("a CA had expired", replace(contents, signers=valid))


def _followed(seen: RotationSnapshot, terms: RotationPolicy) -> RotationChange | None:
    """Two thirds of its life are over: the one to follow is made and published."""
    contents = _contents(seen)
    if len(contents.signers) > 1 or not is_due(contents.signers[0].certificate, seen.now):
        return None
    new = _new(seen, terms)
    return RotationChange(
        "the next CA is published before it is used",
        replace(contents, signers=(*contents.signers, new), trusted=(*contents.trusted, new.certificate)),
    )


def _used(seen: RotationSnapshot, terms: RotationPolicy) -> RotationChange | None:
    """The one to follow has stood in caBundle for long enough: it signs from now on, the old key is forgotten."""
    contents = _contents(seen)
    if len(contents.signers) < 2 or fingerprint(contents.signers[1].certificate) not in seen.settled:
        return None
    new = contents.signers[1]
    rest = (one for one in contents.trusted if one != new.certificate)
    return RotationChange(
        "the next CA is used", CaSecretContents((new,), (new.certificate, *rest), _until(seen, terms))
    )


def _forgotten(seen: RotationSnapshot, _: RotationPolicy) -> RotationChange | None:
    """What signs no more, and has nothing left that it signed, is trusted no more."""
    contents = _contents(seen)
    signing = {one.certificate for one in contents.signers}
    over = contents.previous_until is not None and seen.now >= contents.previous_until
    needed = tuple(one for one in contents.trusted if one in signing or (not over and not has_expired(one, seen.now)))
    if needed == contents.trusted:
        return None
    until = contents.previous_until if len(needed) > len(signing) else None
    return RotationChange("an old CA is not needed any more", replace(contents, trusted=needed, previous_until=until))


RULES: Final[tuple[Rule, ...]] = (_made, _dropped_signer, _used, _followed, _forgotten)


def _contents(seen: RotationSnapshot) -> CaSecretContents:
    assert seen.contents is not None  # noqa: S101 - _made() comes first; this tells the type checker.
    return seen.contents


def _new(seen: RotationSnapshot, terms: RotationPolicy) -> CertificateAuthority:
    return ca.create(f"{names.PROGRAM} CA {seen.now:%Y-%m-%dT%H:%M:%S.%fZ}", now=seen.now, life=terms.ca_life)


def _until(seen: RotationSnapshot, terms: RotationPolicy) -> datetime:
    """A replica may sign by the old CA until it has seen the change; hence more than the life of a certificate."""
    return seen.now + terms.leaf_life + 2 * terms.settling


def _distinct(found: list[x509.Certificate]) -> list[x509.Certificate]:
    return list(dict.fromkeys(found))


class FirstSeen:
    """Remembers as long as it is seen at every look."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def observe(self, found: Iterable[str], now: datetime) -> None:
        """This is what there is now, and nothing else."""
        self._since = {each: self._since.get(each, now) for each in found}

    def seen_for(self, life: timedelta, now: datetime) -> frozenset[str]:
        """What has been there for so long at least."""
        return frozenset(each for each, since in self._since.items() if now - since >= life)
