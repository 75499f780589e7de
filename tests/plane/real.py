"""A running control plane: `start` it once, take its kubeconfig or access, `stop` it."""

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.plane import audit, certs, components
from tests.plane.admin import Admin, context
from tests.plane.kubectl import write_kubeconfig
from tests.plane.places import Binaries
from tests.plane.ports import free_ports
from tests.plane.provide import provide

_READY_WITHIN = 240.0  # seconds; 5 are usual, a cold and busy disk takes its time
_POLL_INTERVAL = 0.05
_APISERVER = 1  # its place among the processes
_ATTEMPTS = 3  # a port that was free may be taken by the time a program binds it
_PARENT_DEATH = str(Path(__file__).with_name("parent_death.py"))
_COLLECTS_SELDOM = {"GOGC": "300"}
"""For Go's garbage collector: by default a fifth of what an API server does for a test is its work."""


class ChildProgramDied(Exception):
    """A program that should run does not; the message ends with the tail of its log."""


class ChildProgram:
    """Start it from the main thread: the tether ends with the thread that started it."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.command = command
        self.log = log
        with log.open("ab") as out:
            self._child = subprocess.Popen(  # noqa: S603 - a program of the control plane
                [sys.executable, "-IS", _PARENT_DEATH, str(os.getpid()), *command],
                env={**os.environ, **_COLLECTS_SELDOM},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops us in order
            )

    def check(self) -> None:
        """Died if it has ended."""
        if (code := self._child.poll()) is not None:
            raise ChildProgramDied(f"{self.name} ended with code {code}:\n{self.tail()}")

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-25:])

    def stop(self) -> None:
        """Kill and wait until it is gone. No draining: whatever it holds is thrown away with its folder."""
        self._child.kill()
        self._child.wait()


class RealPlane:
    """Synchronous on purpose: one serves a whole test session, whose event loops come and go."""

    def __init__(
        self,
        binaries: Binaries | None = None,
        *,
        controllers: bool = True,
        scheduler: bool = False,
        features: tuple[str, ...] = (),
        audited: bool = False,
        prepare: Callable[[Admin], None] = lambda _: None,
    ) -> None:
        """`scheduler`: kube-scheduler runs as well, and binds pods that a played one would bind elsewhere. `features`:
        feature gates that are on in all programs.

        `audited`: the requests of service accounts are written down for `requests`.

        `prepare` runs once the API server is ready and before the controllers start. It is the place for CRDs: the
        garbage collector learns of kinds when it starts, and then every 30 s.
        """
        self._binaries = binaries
        self._controllers = controllers
        self._scheduler = scheduler
        self._features = features
        self._audited = audited
        self._prepare = prepare
        self._processes: list[ChildProgram] = []
        self._folder: Path | None = None
        self._layout: components.Layout | None = None
        self._admin: Admin | None = None

    @classmethod
    def attached(cls, layout: components.Layout) -> Self:
        """A plane that another process of this test run has started, and will stop."""
        plane = cls(layout.binaries)
        plane._layout, plane._admin = layout, Admin(layout.api_port, context(layout.certificates))
        return plane

    def start(self) -> Self:
        """Returns when /readyz says so and the controllers are started; `Died` with the log's tail when that fails."""
        self._binaries = self._binaries or provide()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start(self._binaries)
            except ChildProgramDied as error:
                self.stop()
                if attempt == _ATTEMPTS or "address already in use" not in str(error):
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def stop(self) -> None:
        """Returns when every process is gone and so is the folder. Safe to call twice."""
        while self._processes:
            self._processes.pop().stop()
        if self._folder is not None:
            shutil.rmtree(self._folder)
        self._folder = self._layout = self._admin = None

    def stop_apiserver(self) -> None:
        """Kills it. What is stored stays."""
        self._processes[_APISERVER].stop()

    def restart_apiserver(self) -> None:
        """The same again on the same port; returns when it is ready. It has forgotten what watches could begin from."""
        stopped = self._processes[_APISERVER]
        stopped.stop()
        self._processes[_APISERVER] = ChildProgram(stopped.name, stopped.command, stopped.log)
        self._until("/readyz answers", self._ready)

    def compact_history(self) -> None:
        """Etcd forgets every version of every object but the last, as it does every five minutes in production."""
        etcd = f"http://127.0.0.1:{self.layout.etcd_port}/v3/kv"
        now = _post(f"{etcd}/range", {"key": "AA=="})["header"]["revision"]
        _post(f"{etcd}/compaction", {"revision": now, "physical": True})

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.layout.api_port}"

    @property
    def kubeconfig(self) -> Path:
        """Of a user in system:masters."""
        return self.layout.kubeconfig

    @property
    def ssl(self) -> ssl.SSLContext:
        """The admin's client certificate and the CA; a new one each time, so that a caller may change it."""
        return context(self.layout.certificates)

    @property
    def binaries(self) -> Binaries:
        return self.layout.binaries

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            raise RuntimeError("the control plane is not running")
        return self._admin

    def requests(self, account: str, namespace: str) -> list[audit.AuditedRequest]:
        """All that a service account has asked the API server so far; of a plane that is `audited`."""
        return audit.requests(self.layout.folder, account, namespace)

    @property
    def layout(self) -> components.Layout:
        """Its ports and files. RuntimeError if it is not running."""
        if self._layout is None:
            raise RuntimeError("the control plane is not running")
        return self._layout

    def _start(self, binaries: Binaries) -> None:
        folder = self._folder = Path(tempfile.mkdtemp(prefix="jobset-gate-plane-"))
        certificates = certs.make(folder / "certs")
        etcd_port, peer_port, api_port = free_ports(3)
        layout = components.Layout(
            binaries, folder, certificates, folder / "kubeconfig", etcd_port, peer_port, api_port, self._features
        )
        user = {"client-certificate": str(certificates.admin.cert), "client-key": str(certificates.admin.key)}
        write_kubeconfig(layout.kubeconfig, f"https://127.0.0.1:{api_port}", user=user, ca=certificates.ca)
        self._layout = layout
        self._admin = Admin(api_port, context(certificates))
        self._run("etcd", components.etcd(layout))
        recorded = audit.flags(folder) if self._audited else []
        self._run("kube-apiserver", components.apiserver(layout, recorded))
        self._until("/readyz answers", self._ready)
        self._prepare(self._admin)
        if self._controllers:
            self._run("kube-controller-manager", components.controller_manager(layout))
        if self._scheduler:
            self._run("kube-scheduler", components.scheduler(layout))
        if self._controllers:
            self._until("the controllers run", self._controllers_run)

    def _run(self, name: str, command: list[str]) -> None:
        assert self._folder is not None
        self._processes.append(ChildProgram(name, command, self._folder / f"{name}.log"))

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while not reached():
            for process in self._processes:
                process.check()
            if time.monotonic() > deadline:
                tails = "\n".join(f"--- {process.name}\n{process.tail()}" for process in self._processes)
                raise ChildProgramDied(f"waited {_READY_WITHIN:.0f} s until {what}:\n{tails}")
            time.sleep(_POLL_INTERVAL)  # at start-up there is nothing to be woken by

    def _ready(self) -> bool:
        try:
            return self.admin.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def _controllers_run(self) -> bool:
        """The default service account of the default namespace is made by them, and pods need it."""
        return self.admin.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200


def _post(url: str, body: dict[str, object]) -> Any:
    """To etcd, which speaks JSON too."""
    request = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310 - http on loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        return json.load(answer)
