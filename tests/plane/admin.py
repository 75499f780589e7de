"""The few requests that running a control plane takes, synchronous and on the standard library alone."""

import http.client
import json
import ssl
from collections.abc import Mapping
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
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.ssl, timeout=60)
        try:
            content = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, content)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def must(self, method: str, path: str, body: Mapping[str, Any] | None = None, also: int = 200) -> str:
        """The text; RuntimeError unless the code is 2xx or `also`."""
        status, text = self.request(method, path, body)
        if status // 100 != 2 and status != also:
            raise RuntimeError(f"{method} {path}: {status} {text[:500]}")
        return text


def context(certificates: Certificates) -> ssl.SSLContext:
    """TLS with the admin's client certificate."""
    made = ssl.create_default_context(cafile=str(certificates.ca))
    made.load_cert_chain(certificates.admin.cert, certificates.admin.key)
    return made
