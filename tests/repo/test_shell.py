"""Our shell scripts are complete programs, and stop where something fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plane import versions
from tests.repo.files import ROOT, tracked

AIRGAP = ROOT / "e2e" / "airgap"


def interpreter(path: Path) -> str:
    """The shell that a script's first line names, or "" for other files."""
    with path.open("rb") as file:
        words = file.readline().removeprefix(b"#!").decode(errors="replace").split() or [""]
    name = words[-1].rsplit("/", 1)[-1]
    return name if name in ("sh", "bash") else ""


SCRIPTS = [path for path in tracked() if interpreter(path)]
SOURCED = sorted(AIRGAP.glob("*.sh"))
STAGES = sorted((AIRGAP / "stages").iterdir())


def test_a_shell_understands_each() -> None:
    for script in (*SCRIPTS, *SOURCED):
        shell = shutil.which(interpreter(script) or "bash")
        assert shell
        ran = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)  # noqa: S603
        assert (ran.returncode, ran.stderr) == (0, ""), script


def test_those_of_airgap_can_be_run_and_stop_at_the_first_failure() -> None:
    for script in (AIRGAP / "setup", *STAGES):
        assert script.stat().st_mode & 0o111, script
        assert "set -euo pipefail" in script.read_text(), script


def declared(stage: Path, what: str) -> list[str]:
    """The words of a stage's line `# uses: ...`."""
    start = f"# {what}: "
    lines = [line.removeprefix(start) for line in stage.read_text().splitlines() if line.startswith(start)]
    return " ".join(lines).split()


def test_a_stage_says_all_that_it_uses_of_this_folder_which_comes_before_it() -> None:
    """Its key is made of that: what is not said would be changed without effect."""
    for stage in STAGES:
        text, uses = stage.read_text(), declared(stage, "uses")
        for used in uses:
            assert (AIRGAP / used).exists(), stage
            assert not used.startswith("stages/") or used < f"stages/{stage.name}"
        for folder in ("node", "go"):
            assert f"$KIND_TOOLS/{folder}/" not in text or any(used.startswith(folder) for used in uses), stage
        for sourced in SOURCED:  # lib.sh counts for every stage
            assert f"$KIND_TOOLS/{sourced.name}" not in text or sourced.name in {"lib.sh", *uses}, stage


def test_the_versions_are_those_of_the_control_plane_of_the_tests() -> None:
    env = (AIRGAP / "env.sh").read_text()
    modules = (AIRGAP / "go" / "kube" / "go.mod").read_text()
    assert f"KUBERNETES_VERSION={versions.KUBERNETES} " in env
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in modules
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in modules


# --- What e2e/airgap does to the machine, tried on a fake one: no service starts, the firewall stays as it was --------


SYSTEM_UNITS = ("docker.service", "docker.socket", "containerd.service")


class FakeMachine:
    """Fake programs in `bin`; the arguments of some of them stand in `asked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.policy = folder / "policy-rc.d"
        self.units = folder / "units"
        self.units.mkdir()
        self.program("dpkg", f"test -e {folder}/installed")
        touches = "; ".join(f"touch {self.units}/{unit}" for unit in SYSTEM_UNITS)
        self.installs = f"touch {folder}/installed; {touches}"
        self.program("systemctl", self.writes_down("systemctl"))
        # `-P FORWARD DROP` and `-N CHAIN` are kept in a file, `-S` shows it.
        self.program(
            "iptables", f'case $1 in -P) echo "-P FORWARD $3" > {folder}/rules ;; -S) cat {folder}/rules ;; esac'
        )
        self.rules("-P FORWARD ACCEPT")

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def writes_down(self, name: str) -> str:
        return f'echo "{name} $*" >> {self.folder}/asked'

    def rules(self, *lines: str) -> None:
        (self.folder / "rules").write_text("".join(f"{line}\n" for line in lines))

    def forward_policy(self) -> str:
        return (self.folder / "rules").read_text().splitlines()[0]

    def run(self, text: str) -> int:
        """The exit code of a script that has what the stages have."""
        asks = f'if [ "$1" = install ]; then cp {self.policy} {self.folder}/policy-then; {self.installs}; fi'
        self.program("apt-get", f"{self.writes_down('apt-get')}\n{asks}")
        sources = "".join(f". {AIRGAP / name}\n" for name in ("lib.sh", "services.sh", "firewall.sh"))
        env = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "KIND_HOME": str(self.folder),
            "POLICY": str(self.policy), "UNITS": str(self.units),
        }  # fmt: skip
        command = ["bash", "-c", f"set -euo pipefail\n{sources}{text}"]
        return subprocess.run(command, env=env, check=False).returncode  # noqa: S603

    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def policy_during_the_installation(self) -> int:
        return subprocess.run(["sh", self.folder / "policy-then"], check=False).returncode  # noqa: S603, S607


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


INSTALL = "silently docker.io"


def test_a_docker_that_comes_along_is_not_started_now_nor_at_the_next_boot(machine: FakeMachine) -> None:
    assert machine.run(INSTALL) == 0
    assert machine.policy_during_the_installation() == 101
    assert not machine.policy.exists()
    assert [line for line in machine.asked() if line.startswith("systemctl")] == [
        f"systemctl disable --quiet {unit}" for unit in SYSTEM_UNITS
    ]


def test_a_docker_that_was_there_before_stays_as_it_is(machine: FakeMachine) -> None:
    for unit in SYSTEM_UNITS[:2]:
        (machine.units / unit).touch()
    assert machine.run(INSTALL) == 0
    assert machine.asked()[-1] == "systemctl disable --quiet containerd.service"
    assert sum(line.startswith("systemctl") for line in machine.asked()) == 1


@pytest.mark.parametrize("own", ["", "#!/bin/sh\nexit 104\n"], ids=["without policy", "with policy"])
def test_the_policy_of_the_machine_returns_after_an_installation_that_was_killed_and_one_that_failed(
    machine: FakeMachine, own: str
) -> None:
    if own:
        machine.policy.write_text(own)
    machine.run("forbid_services; kill -KILL $$")
    assert "exit 101" in machine.policy.read_text()
    machine.installs += "; exit 100"
    assert machine.run(INSTALL) != 0
    assert machine.policy_during_the_installation() == 101
    assert (machine.policy.read_text() if machine.policy.exists() else "") == own


DAEMON_STARTS = "remember_policy; iptables -P FORWARD DROP"


def test_a_daemon_that_was_killed_does_not_pass_its_policy_on_to_the_next(machine: FakeMachine) -> None:
    machine.run(DAEMON_STARTS)
    machine.rules("-P FORWARD DROP", "-N DOCKER", "-N DOCKER-USER")  # as dockerd leaves it
    assert machine.run(f"{DAEMON_STARTS}; restore_policy") == 0
    assert machine.forward_policy() == "-P FORWARD ACCEPT"
    # What was remembered before a reboot does not count: an administrator may have set another policy.
    machine.run(DAEMON_STARTS)
    machine.rules("-P FORWARD DROP")
    assert machine.run(f"{DAEMON_STARTS}; restore_policy") == 0
    assert machine.forward_policy() == "-P FORWARD DROP"
