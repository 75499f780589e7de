"""The barrier's rule as a pure function: what barrier.sh does with the texts it reads (contract A5, A6, A7).

Two kinds of texts that nobody of ours writes it takes otherwise: a shell drops NUL bytes, and compares epochs of ten or
more digits as far as its own numbers go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobset_gate import names

ROUNDING = 1.0  # seconds; the script counts whole ones and gives up after the limit, not before
LONGEST_MESSAGE = 1024  # bytes
_MAX_DIGITS = 9  # a longer number is none to the shell either


@dataclass(frozen=True, slots=True)
class BarrierIdentity:
    """The barrier's own generation and limit, from its environment when its container started.

    `attempt` and `epoch` are texts, as the downward API gives them; `limit` is in seconds, None for no limit.
    """

    uid: str
    attempt: str
    epoch: str
    limit: float | None

    @property
    def floor(self) -> int:
        """The oldest epoch whose verdict binds it; a missing epoch is 0."""
        return _number(self.epoch)

    @classmethod
    def from_env(cls, env: dict[str, str]) -> BarrierIdentity:
        limit = env.get(names.ENV_LIMIT, "")
        return cls(
            uid=env.get(names.ENV_UID, ""),
            attempt=env.get(names.ENV_ATTEMPT, ""),
            epoch=env.get(names.ENV_EPOCH, ""),
            limit=float(limit) if _is_number(limit) else None,
        )


@dataclass(frozen=True, slots=True)
class BarrierExit:
    """How the barrier ends: its exit code and the termination message, "" for none."""

    code: int
    message: str = ""


def read_verdict(own: BarrierIdentity, texts: Iterable[str]) -> BarrierExit | None:
    """The first of the texts that is a verdict for this barrier decides; None: wait on."""
    for text in texts:
        ending = _obeyed(own, text)
        if ending is not None:
            return ending
    return None


def exit_at_limit(own: BarrierIdentity, waited: float) -> BarrierExit | None:
    """The end at the barrier's own limit (A7, backstop), after `waited` seconds without a verdict."""
    if own.limit is None or waited < own.limit + ROUNDING:
        return None
    message = f"timed out: no verdict from the jobset-gate controller within {own.limit:.0f}s"
    return BarrierExit(names.EXIT_TIMED_OUT, message)


def _obeyed(own: BarrierIdentity, text: str) -> BarrierExit | None:
    head, _, message = text.partition("\n")
    words = head.replace("\t", " ").split(" ")  # as the shell's `read`: a carriage return is no blank
    words = [word for word in words if word]
    if len(words) < 4:
        return None
    kind, uid, attempt, epoch, *_ = words
    if not own.uid or uid != own.uid or attempt != own.attempt:
        return None
    if not _is_number(epoch) or int(epoch) < own.floor:
        return None
    if kind == "release":
        return BarrierExit(0)
    if kind == "timeout":
        told = message.encode()[:LONGEST_MESSAGE].decode(errors="ignore")
        return BarrierExit(names.EXIT_TIMED_OUT, told.rstrip("\n"))
    return None


def _number(text: str) -> int:
    return int(text) if _is_number(text) else 0


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
