"""The JobSet stand-in as a program in a cluster: `python -m jobset_gate.fake.standin --service NAMESPACE/NAME`.

For clusters that cannot have the real JobSet: puts in the CRD, serves JobSet's admission behind that Service, and makes
Jobs of JobSets. One replica, no lease. Its certificate is made at each start and registered with it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typing_extensions import override

from jobset_gate.fake import jobset_crd
from jobset_gate.fake.certificates import ServerIdentity
from jobset_gate.fake.jobset import admission as jobset_admission
from jobset_gate.fake.jobset.admission import JobSetAdmission
from jobset_gate.fake.jobset.controller import JobSetController
from jobset_gate.fake.objects import Json
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource

PORT = 9443
CONNECTIONS = 64
_LIFE = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class StandinOptions:
    """What the command line says."""

    namespace: str
    service: str
    host: str
    port: int
    kubeconfig: str | None


class StandinAdmission(JobSetAdmission):
    """JobSet's admission for API servers that find it through a Service."""

    def __init__(self, asked: StandinOptions) -> None:
        super().__init__()
        self._asked = asked
        self._identity = _identity(f"{asked.service}.{asked.namespace}.svc")

    @override
    async def start(self) -> None:
        app = web.Application(client_max_size=jobset_admission.LARGEST_BODY)
        app.router.add_post(jobset_admission.MUTATE, _answering(jobset_admission.mutate))
        app.router.add_post(jobset_admission.VALIDATE, _answering(jobset_admission.validate))
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._asked.host, self._asked.port, ssl_context=self._identity.context).start()

    @override
    def configurations(self) -> list[tuple[Resource, Json]]:
        made = super().configurations()
        for _, body in made:
            for hook in body["webhooks"]:
                client = hook["clientConfig"]
                client["service"] = {"namespace": self._asked.namespace, "name": self._asked.service}
                client["service"]["path"] = client.pop("url").removeprefix(self.url)
        return made


async def serve(asked: StandinOptions) -> None:
    """Until cancelled, or until a part of it fails. The webhooks stay registered: it will be back in a moment."""
    reached = await access.load_access(asked.kubeconfig)
    admission = StandinAdmission(asked)
    async with Client(reached, user_agent="jobset-controller", connections=CONNECTIONS) as client:
        await jobset_crd.install(client)
        await admission.start()
        try:
            await admission.install(client)
            await JobSetController(client, time.time).run()
        finally:
            await admission.stop()


async def run_until_signal(asked: StandinOptions) -> None:
    """Until SIGTERM or SIGINT."""
    loop, serving = asyncio.get_running_loop(), asyncio.ensure_future(serve(asked))
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, serving.cancel)
    await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


def parse_options(arguments: list[str] | None = None) -> StandinOptions:
    """Reads the command line. Ends the program when it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m jobset_gate.fake.standin", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--service", required=True, metavar="NAMESPACE/NAME", help="the Service in front of it")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where it listens")
    parser.add_argument("--port", type=int, default=PORT, help="its port; the Service's is 443")
    parser.add_argument("--kubeconfig", metavar="FILE", help="otherwise that of the pod it runs in, or the usual one")
    given = parser.parse_args(arguments)
    namespace, _, service = given.service.partition("/")
    if not namespace or not service:
        parser.error(f"--service {given.service}: expected NAMESPACE/NAME")
    return StandinOptions(namespace, service, given.host, given.port, given.kubeconfig)


def _answering(review: jobset_admission.Review) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(http: web.Request) -> web.Response:
        request = (await http.json())["request"]
        response = {"uid": request["uid"], **review(request)}
        said = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.json_response(said)

    return answer


def _identity(host: str) -> ServerIdentity:
    """A certificate for that host name, its own authority."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads files only.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.pem"
        file.touch(mode=0o600)
        file.write_bytes(pem + private)
        context.load_cert_chain(file)
    return ServerIdentity(context, pem)


if __name__ == "__main__":
    asyncio.run(run_until_signal(parse_options()))
