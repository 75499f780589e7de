"""`controller` as a process: ready, leading, and ended by a signal or an error."""

import json
import socket
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve.controller import options
from jobset_gate.cli.settings_file import ControllerSection, read
from jobset_gate.fake import jobset_crd
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import LEASES
from tests.fakes.cli_runner import RunCli
from tests.fakes.service_process import fetch, running_service, until_ready
from tests.plane.planes import Plane


@pytest.mark.parametrize("how", [SIGTERM, SIGINT])
async def test_it_becomes_ready_and_ends_in_order_on_a_signal(plane: Plane, namespace: str, how: Signals) -> None:
    """Its lease is given back, so that the next one need not wait."""
    async with plane.client() as client:
        await jobset_crd.install(client)
        arguments = ["-n", namespace, "--kubeconfig", str(plane.kubeconfig), "--port", "0", "--identity", "me"]
        async with running_service("controller", *arguments) as service:
            runs = await service.until("controller runs")
            assert runs["lease"] == f"{namespace}/me"
            await service.until("leading")
            await service.until("JobSet CRD reconciled")
            await until_ready(runs["url"])
            assert await fetch(f"{runs['url']}/healthz") == (200, "ok")
            status, metrics = await fetch(f"{runs['url']}/metrics")
            assert status == 200
            assert f'leader_election_master_status{{name="{names.LEASE}"}} 1.0' in metrics
            assert (await client.get(LEASES, names.LEASE, namespace))["spec"]["holderIdentity"] == "me"
            assert await service.stop(how) == 0
        assert not (await client.get(LEASES, names.LEASE, namespace))["spec"].get("holderIdentity")


async def test_it_serves_the_gate_stream_when_asked_to(embedded_plane: Plane) -> None:
    arguments = ["--kubeconfig", str(embedded_plane.kubeconfig), "--port", "0"]
    async with running_service("controller", *arguments, "--stream-host", "127.0.0.1", "--stream-port", "0") as service:
        url = (await service.until("gate stream listens"))["url"]
        assert (await fetch(f"{url}/v1/gangs/default/train/token/uid/0/0/pod"))[0] == 403
        assert await service.stop() == 0


async def test_without_a_lease_for_one_namespace(plane: Plane, namespace: str) -> None:
    arguments = ["--no-leader-elect", "--no-extend-crd", "--watch-namespace", namespace, "--port", "0"]
    async with running_service("controller", *arguments, "--kubeconfig", str(plane.kubeconfig)) as service:
        runs = await service.until("controller runs")
        assert (runs["lease"], runs["watches"]) == (None, namespace)
        await service.until("leading")
        await until_ready(runs["url"])
        assert await service.stop() == 0


async def test_a_lost_lease_ends_it_with_1_and_a_clear_line(embedded_plane: Plane) -> None:
    arguments = ["--kubeconfig", str(embedded_plane.kubeconfig), "--port", "0"]
    async with embedded_plane.client() as client, running_service("controller", *arguments) as service:
        await service.until("leading")
        taken = {"spec": {"holderIdentity": "another"}}
        await client.patch(LEASES, names.LEASE, "default", body=taken, patch=PatchType.MERGE)
        assert await service.ended() == 1
        failed = json.loads(service.lines[-1])
        assert (failed["level"], failed["msg"]) == ("error", "failed")
        assert "another" in failed["error"]


async def test_a_port_that_is_taken(embedded_plane: Plane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ["--kubeconfig", str(embedded_plane.kubeconfig), "--port", port]
        async with running_service("controller", *arguments) as service:
            assert await service.ended() == 1
            assert "address already in use" in json.loads(service.lines[-1])["error"]


def test_no_kubeconfig(run: RunCli, tmp_path: Path) -> None:
    ran = run("controller", "--kubeconfig", str(tmp_path / "none"))
    assert ran.code == 1
    assert ran.err.splitlines()[-1].startswith(f"error: kubeconfig {tmp_path / 'none'}: ")


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("controller:\n  workers: 7\n  patchConcurrency: 9\n  leaseDuration: 30\nbarrier: {}\n")
    made = options(read(file).controller, workers=2, patch_concurrency=None, extend_crd=False)
    assert (made.workers, made.patch_concurrency, made.lease_duration, made.extend_crd) == (2, 9, 30, False)
    assert options(ControllerSection()).workers == ManagerOptions().workers


def test_the_gate_stream_is_off_unless_it_is_given_a_port(tmp_path: Path) -> None:
    assert options(ControllerSection()).stream_port is None
    file = tmp_path / "s.yaml"
    file.write_text("controller:\n  streamHost: 0.0.0.0\n  streamPort: 8082\n")
    made = options(read(file).controller, stream_port=None)
    assert (made.stream_host, made.stream_port) == ("0.0.0.0", 8082)  # noqa: S104 - it is only read
    assert options(read(file).controller, stream_port=0).stream_port == 0


def test_the_annotation_channel_can_be_switched_off(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("controller: {patchConcurrency: 0}")
    assert options(read(file).controller).patch_concurrency == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("controller: {workers: 0}", "controller.workers: 0: input should be greater than or equal to 1"),
        ("controller: {streamPort: 65536}", "controller.streamPort: 65536: input should be less than or equal to"),
        ("controller: {patchConcurrency: -1}", "controller.patchConcurrency: -1: input should be greater than or"),
        ("controller: {wrokers: 1}", "controller.wrokers: 1: extra inputs are not permitted"),
        ("controller: 5", "controller: 5: "),
        ("barrier: {graceSeconds: -1}", "barrier.graceSeconds: -1: "),
        ("barriers: {}", "barriers: {}: "),
        ("- a", "settings are one YAML mapping"),
        ("a: 1\n---\nb: 1", "settings are one YAML mapping"),
        ("a: [", "not YAML that kubectl would read"),
    ],
)
def test_bad_settings_are_reported_with_their_path(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(CommandError) as failed:
        read(file)
    assert str(failed.value).startswith(str(file))
    assert message in str(failed.value)
