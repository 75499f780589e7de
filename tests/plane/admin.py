"""The few requests that running a control plane takes, synchronous and on the standard library alone."""

import http.client
import json
import ssl
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tests.plane.certs import Certificates


@dataclass(frozen=True, slots=True)
class Admin:
    """Speaks to one API server as a member of system:masters."""

    port: int
    ssl: ssl.SSLContext

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, str]:
        """Status code and text; OSError when nobody answers."""
        with closing(self._connection()) as connection:
            return _ask(connection, method, path, body)

    def must(self, method: str, path: str, body: Mapping[str, Any] | None = None, also: int = 200) -> str:
        """The text; RuntimeError unless the code is 2xx or `also`."""
        return _expect(self.request(method, path, body), f"{method} {path}", also)

    def delete(self, paths: Iterable[str]) -> None:
        """One after the other on one connection; what is not there, or whose kind is not, is no error."""
        with closing(self._connection()) as connection:
            for path in paths:
                _expect(_ask(connection, "DELETE", path), f"DELETE {path}", 404)

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.ssl, timeout=60)


def _ask(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Mapping[str, Any] | None = None
) -> tuple[int, str]:
    content = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, content)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error


def _expect(answer: tuple[int, str], what: str, also: int) -> str:
    status, text = answer
    if status // 100 != 2 and status != also:
        raise RuntimeError(f"{what}: {status} {text[:500]}")
    return text


def context(certificates: Certificates) -> ssl.SSLContext:
    """TLS with the admin's client certificate."""
    made = ssl.create_default_context(cafile=str(certificates.ca))
    made.load_cert_chain(certificates.admin.cert, certificates.admin.key)
    return made
