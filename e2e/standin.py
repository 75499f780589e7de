"""The JobSet stand-in as a program in a cluster: `python -m standin`.

For clusters that cannot have the real JobSet: installs the CRD, which sets the defaults of JobSet's webhook, and makes
Jobs of JobSets. One replica, no lease.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time

from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.jobset_controller import JobSetController

CONNECTIONS = 64


async def run(kubeconfig: str | None) -> None:
    """Until cancelled, or until a part of it fails."""
    cluster = await access.load_access(kubeconfig)
    async with Client(cluster, user_agent="jobset-controller", connections=CONNECTIONS) as client:
        await jobset_crd.install(client)
        await JobSetController(client, time.time).run()


async def run_until_signal(kubeconfig: str | None) -> None:
    """Until SIGTERM or SIGINT."""
    loop, running = asyncio.get_running_loop(), asyncio.ensure_future(run(kubeconfig))
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, running.cancel)
    await asyncio.wait([running])
    if not running.cancelled():
        running.result()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="standin", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kubeconfig", metavar="FILE", help="otherwise that of the pod it runs in, or the usual one")
    asyncio.run(run_until_signal(parser.parse_args().kubeconfig))
