"""`webhook` as a process: serves, registers itself, is called by an API server, and leaves nothing behind."""

import asyncio
import json
from base64 import b64decode
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve.registration import service as parse_service
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from jobset_gate_demo.fake import jobset_crd, manifests
from tests.fakes.cli_runner import RunCli
from tests.fakes.eventually import PATIENCE
from tests.fakes.grouped_pods import pod
from tests.fakes.service_process import ServiceProcess, fetch, running_service
from tests.plane.planes import Plane
from webhook.registration import MUTATING, VALIDATING, pod_configuration

FILES = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
BOTH: list[tuple[Resource, str]] = [(MUTATING_WEBHOOKS, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING)]
FOR_PODS: tuple[Resource, str] = (MUTATING_WEBHOOKS, names.POD_WEBHOOK)
ALL = [*BOTH, FOR_PODS]
NO_PODS = "groups: {enabled: false}"
START_GROUPS = f"{{{NO_PODS}, gangs: {{sources: [jobset, startgroup], podFailurePolicy: Ignore}}}}"
Json = dict[str, Any]


def registering(plane: Plane, *more: str) -> AbstractAsyncContextManager[ServiceProcess]:
    """A webhook with a certificate of its own that writes its configurations."""
    where = ("--kubeconfig", str(plane.kubeconfig), "--port", "0")
    return running_service("webhook", "--self-signed", "--register", *where, *more)


async def registered(service: ServiceProcess, configurations: int = len(ALL)) -> str:
    """The URL at which it listens, once so many configurations are written."""
    url: str = (await service.until("webhook listens"))["url"]
    for _ in range(configurations):
        await service.until("registered")
    return url


async def until_mutated(client: Client, resource: Resource, body: Json, namespace: str, mark: str) -> None:
    """Returns once the API server has learned of the webhook: a dry run comes back with the mark."""
    async with asyncio.timeout(PATIENCE):
        while mark not in json.dumps(await client.create(resource, body, namespace, dry_run=True)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # nothing tells when an API server has read its webhook configurations


async def test_it_registers_itself_is_called_and_leaves_nothing_behind(plane: Plane, namespace: str) -> None:
    async with plane.client() as client:
        await jobset_crd.install(client)
        async with registering(plane, "--unregister-on-exit") as service:
            url = await registered(service)
            hook = (await client.get(*BOTH[0]))["webhooks"][0]
            assert hook["clientConfig"]["url"] == f"{url}/mutate"
            ca = b64decode(hook["clientConfig"]["caBundle"]).decode()
            assert await fetch(f"{url}/readyz", ca) == (200, "ok\n")
            good, wrong = ({names.CONFIG: f'{{"timeoutAfterSeconds":{it}}}'} for it in (300, 0))
            gang = manifests.gang("train", namespace, jobs=1, pods=2, annotations=good)
            await until_mutated(client, JOBSETS, gang, namespace, names.GATED)
            await until_mutated(client, PODS, pod(Format.KEP_24), namespace, names.POD_GROUP_GATE)
            bad = manifests.gang("train", namespace, timeout=0, annotations=wrong)
            with pytest.raises(ApiError, match="timeoutAfterSeconds: 0: must be an integer from 1"):
                await client.create(JOBSETS, bad, dry_run=True)
            assert await service.stop() == 0
        for resource, name in ALL:
            with pytest.raises(NotFound):
                await client.get(resource, name)


async def test_what_is_off_does_not_ask_for_pods_and_an_old_registration_is_taken_away(
    embedded_plane: Plane, tmp_path: Path
) -> None:
    config = tmp_path / "settings.yaml"
    async with embedded_plane.client() as client:
        await client.create(FOR_PODS[0], pod_configuration(Groups(), url="https://127.0.0.1:1"))
        for settings, policies in ((NO_PODS, []), (START_GROUPS, ["Ignore"]), (NO_PODS, []), (NO_PODS, [])):
            config.write_text(settings)
            async with registering(embedded_plane, "--config", str(config)) as service:
                await registered(service, len(BOTH) + len(policies))
                found = {one["metadata"]["name"]: one for one in (await client.list(MUTATING_WEBHOOKS))["items"]}
                assert [one["webhooks"][0]["failurePolicy"] for one in found.values()] == ["Fail", *policies]
                assert (names.BARRIER_POD_WEBHOOK in found) is bool(policies)
                assert await service.stop() == 0


async def test_a_second_start_updates_what_is_there_and_keeps_it_at_the_end(plane: Plane, namespace: str) -> None:
    """And what others own in it stays: here a label, in a cluster the caBundle of cert-manager."""
    async with plane.client() as client:
        try:
            async with registering(plane) as service:
                first = await registered(service)
                assert await service.stop() == 0
            for resource, name in ALL:
                body = {"metadata": {"labels": {"team": namespace}}}
                await client.patch(resource, name, body=body, patch=PatchType.MERGE)
            async with registering(plane) as service:
                second = await registered(service)
                assert await service.stop() == 0
            found = [await client.get(resource, name) for resource, name in ALL]
            urls = [one["webhooks"][0]["clientConfig"]["url"] for one in found]
            assert urls == [f"{second}/mutate", f"{second}/validate", f"{second}/mutate-pods"]
            assert first != second
            assert [one["metadata"]["labels"]["team"] for one in found] == [namespace] * 3
        finally:
            for resource, name in ALL:
                await client.delete(resource, name)


def test_files_that_hold_no_certificate(run: RunCli, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("nonsense")
    ran = run("webhook", "--tls-cert", str(tmp_path / "c"), "--tls-key", str(tmp_path / "c"), "--port", "0")
    assert (ran.code, f"error: {tmp_path / 'c'}, {tmp_path / 'c'}: no certificate with its key" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give one of --self-signed, --own-ca, or both --tls-cert and --tls-key"),
        ("--own-ca ca", "--own-ca, --publish-ca and --check-trust need --service"),
        ("--tls-cert x --tls-key y --publish-ca --service a/b", "--publish-ca needs --tls-ca"),
        ("--tls-cert x --tls-key y --tls-ca z", "--tls-ca needs --publish-ca"),
        ("--self-signed --check-trust --service a/b", "--check-trust needs --tls-cert"),
        ("--self-signed --service a/b", "--service needs --own-ca"),
        ("--own-ca ca --service a/b --ca-days 1 --leaf-hours 9", "at least three times as long"),
        ("--own-ca ca --service a/b --leaf-hours 0", "Invalid value for '--leaf-hours'"),
        ("--tls-cert x", "--tls-cert and --tls-key belong together"),
        ("--self-signed --unregister-on-exit", "needs --register"),
        ("--own-ca ca --service a/b --register", "--register needs --self-signed"),
        ("--self-signed --register --host 0.0.0.0", "a --host that API servers reach"),
        ("--self-signed --port 65536", "Invalid value for '--port'"),
    ],
)
def test_options_that_do_not_fit_together(run: RunCli, arguments: str, message: str) -> None:
    ran = run("webhook", *arguments.split())
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("text", ["x", "a/b/c", "a/", "a/b:x", "A/b"])
def test_a_service_that_is_none(text: str) -> None:
    with pytest.raises(CommandError, match="expected NAMESPACE/NAME or NAMESPACE/NAME:PORT"):
        parse_service(text)
