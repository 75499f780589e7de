"""The JobSet stand-in as a program in a cluster: `python -m standin --service NAMESPACE/NAME`.

For clusters that cannot have the real JobSet: installs the CRD, serves JobSet's admission behind that Service, and
makes Jobs of JobSets. One replica, no lease. Its certificate is made at each start and registered with it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from dataclasses import dataclass

from jobset_gate.fake import jobset_crd
from jobset_gate.fake.jobset_admission import JobSetAdmission
from jobset_gate.fake.jobset_controller import JobSetController
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

PORT = 9443
CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class StandinOptions:
    """The command line."""

    service: tuple[str, str]
    host: str
    port: int
    kubeconfig: str | None


async def serve(options: StandinOptions) -> None:
    """Until cancelled, or until a part of it fails. The webhooks stay registered for the next start."""
    cluster = await access.load_access(options.kubeconfig)
    admission = JobSetAdmission(options.service, options.host, options.port)
    async with Client(cluster, user_agent="jobset-controller", connections=CONNECTIONS) as client:
        await jobset_crd.install(client)
        await admission.start()
        try:
            await admission.install(client)
            await JobSetController(client, time.time).run()
        finally:
            await admission.stop()


async def run_until_signal(options: StandinOptions) -> None:
    """Until SIGTERM or SIGINT."""
    loop, serving = asyncio.get_running_loop(), asyncio.ensure_future(serve(options))
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, serving.cancel)
    await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


def parse_options(arguments: list[str] | None = None) -> StandinOptions:
    """Ends the program for a wrong command line."""
    parser = argparse.ArgumentParser(prog="standin", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--service", required=True, metavar="NAMESPACE/NAME", help="the Service in front of it")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where it listens")
    parser.add_argument("--port", type=int, default=PORT, help="its port; the Service's is 443")
    parser.add_argument("--kubeconfig", metavar="FILE", help="otherwise that of the pod it runs in, or the usual one")
    given = parser.parse_args(arguments)
    namespace, _, service = given.service.partition("/")
    if not namespace or not service:
        parser.error(f"--service {given.service}: expected NAMESPACE/NAME")
    return StandinOptions((namespace, service), given.host, given.port, given.kubeconfig)


if __name__ == "__main__":
    asyncio.run(run_until_signal(parse_options()))
