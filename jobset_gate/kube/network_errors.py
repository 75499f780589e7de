"""Why a server gave no answer, in words: what aiohttp says of it is made for whoever debugs aiohttp."""

import os
import socket

import aiohttp


def describe_error(error: BaseException) -> str:
    """One line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot trust {error.host}:{error.port}: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_system(error.os_error)}"
    return str(error) or type(error).__name__


def _system(error: OSError) -> str:
    """What asyncio adds to it is the address once more."""
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
