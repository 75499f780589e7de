"""Why a server gave no answer, as people read it."""

import errno
import socket
import ssl

import pytest
from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ServerDisconnectedError,
)
from aiohttp.client_reqrep import ConnectionKey

from jobset_gate.kube.transport import describe_error

KEY = ConnectionKey("10.0.0.1", 6443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 6443)")),
            "cannot connect to 10.0.0.1:6443: Connection refused",
        ),
        (
            ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
            "cannot connect to 10.0.0.1:6443: Name or service not known",
        ),
        (
            ClientConnectorError(KEY, OSError("Multiple exceptions: one, two")),
            "cannot connect to 10.0.0.1:6443: Multiple exceptions: one, two",
        ),
        (
            ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError(1, "certificate has expired")),
            "cannot trust 10.0.0.1:6443: certificate has expired",
        ),
        (ServerDisconnectedError(), "Server disconnected"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_broken_connection_is_told_in_words(error: Exception, line: str) -> None:
    assert describe_error(error) == line
