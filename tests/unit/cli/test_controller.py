"""`controller` as a process: ready, leading, and ended by a signal or an error."""

import json
import subprocess
import sys
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.cli.commands.controller import options
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.settings_file import ControllerSection, read
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import LEASES
from jobset_gate_demo.fake import jobset_crd
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


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    section = {"workers": 7, "patchConcurrency": 0, "leaseDuration": "30", "streamHost": "::", "streamPort": 8082}
    file.write_text(json.dumps({"controller": section, "barrier": {}}))
    made = options(read(file).controller, workers=2, patch_concurrency=None, extend_crd=False, stream_port=0)
    assert (made.workers, made.patch_concurrency, made.lease_duration, made.extend_crd) == (2, 0, 30, False)
    assert (made.stream_host, made.stream_port) == ("::", 0)
    assert options(read(file).controller, stream_port=None).stream_port == 8082
    usual = options(ControllerSection())
    assert (usual.workers, usual.stream_port) == (ManagerOptions().workers, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("controller: {workers: 0}", "controller.workers: 0: expected `int` >= 1"),
        ("controller: {wrokers: 1}", "controller.wrokers: 1: unknown key"),
        ("- a", "settings are one YAML mapping"),
        ("a: [", "invalid YAML"),
    ],
)
def test_bad_settings_are_reported_with_their_path(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(CommandError) as failed:
        read(file)
    assert str(failed.value).startswith(str(file))
    assert message in str(failed.value)


def test_tracing_without_its_extra_is_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(CommandError, match=r"pip install 'jobset-gate\[traces\]'"):
        options(ControllerSection(tracing=True))
    assert options(ControllerSection()).tracing is False


def test_a_collectors_endpoint_is_a_url() -> None:
    wanted = options(ControllerSection(tracing=True), tracing_endpoint="https://otel:4318")
    assert wanted.tracing_endpoint == "https://otel:4318"
    with pytest.raises(CommandError, match="otel:4318: must be the base URL of a collector"):
        options(ControllerSection(tracing=True, tracing_endpoint="otel:4318"))


def test_without_tracing_nothing_of_opentelemetry_is_imported() -> None:
    program = (
        "import sys\n"
        "from controllers.manager import Manager\n"
        "from jobset_gate.cli.commands import controller\n"
        "from jobset_gate.cli.commands.controller import ControllerSection, options\n"
        "assert not options(ControllerSection()).tracing\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert ran.stdout == "[]\n"
