"""Viewers who have shown their token in the form: a random word in their cookie, the token in our memory only.

They end with the process, after hours, when nobody has looked for a while, and when the viewer says so.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_AGE: Final = 8 * 3600.0
MAX_IDLE: Final = 3600.0
MAX_SESSIONS: Final = 500
"""Sessions at once; the one that was used least lately ends for a new one."""
ID_BYTES: Final = 32


@dataclass(slots=True)
class _Session:
    token: str
    begun: float
    used: float


class SessionStore:
    """Tokens by session. `now` in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: OrderedDict[bytes, _Session] = OrderedDict()
        """By the hash of their word, so that no comparison tells anything about it."""

    def create(self, token: str) -> str:
        """The word for the cookie."""
        word = secrets.token_urlsafe(ID_BYTES)
        now = self._now()
        self._known[_hash(word)] = _Session(token, now, now)
        while len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)
        return word

    def token_of(self, word: str) -> str | None:
        """Of a session that goes on; its time begins anew."""
        key, now = _hash(word), self._now()
        found = self._known.get(key)
        if found is None:
            return None
        if now - found.begun > MAX_AGE or now - found.used > MAX_IDLE:
            del self._known[key]
            return None
        found.used = now
        self._known.move_to_end(key)
        return found.token

    def delete(self, word: str) -> None:
        """Nobody gets in by it any more."""
        self._known.pop(_hash(word), None)

    def __len__(self) -> int:
        return len(self._known)


def _hash(word: str) -> bytes:
    return hashlib.sha256(word.encode("utf-8", "replace")).digest()
