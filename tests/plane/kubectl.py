"""Runs the real kubectl against a plane."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec


class KubectlFailed(Exception):
    """It ended with another code than 0; the message is the command and what it said."""


def write_kubeconfig(file: Path, server: str, *, user: Mapping[str, str] | None = None, ca: Path | None = None) -> None:
    cluster = {"server": server} | ({"certificate-authority": str(ca)} if ca else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "plane", "cluster": cluster}],
        "users": [{"name": "admin", "user": user or {}}],
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "admin"}}],
        "current-context": "plane",
    }
    file.write_bytes(msgspec.json.encode(config))
    file.chmod(0o600)


@dataclass(frozen=True, slots=True)
class KubectlResult:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.stdout)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """`await kubectl("apply", "-f", "-", stdin=manifest)`; `check=False` to look at a failure, or `refused(...)`."""

    program: str
    kubeconfig: Path
    home: Path  # discovery cache and the like: each plane has its own, since ports are used again

    async def __call__(
        self, *args: str, stdin: str | Mapping[str, Any] | None = None, check: bool = True
    ) -> KubectlResult:
        """`stdin`: text, or an object that is sent as JSON."""
        text = stdin if isinstance(stdin, str | None) else msgspec.json.encode(stdin).decode()
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.home / 'cache'}",
            *args,
            stdin=asyncio.subprocess.PIPE if text is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self.home), "PATH": os.environ.get("PATH", ""), "KUBECTL_KUBERC": "false", "GOGC": "400"},
        )
        try:
            out, err = await process.communicate(text.encode() if text is not None else None)
        except BaseException:  # a cancelled test leaves no kubectl behind
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        ran = KubectlResult(process.returncode or 0, out.decode(), err.decode())
        if check and ran.code != 0:
            raise KubectlFailed(f"kubectl {' '.join(args)}: code {ran.code}\n{ran.stdout}{ran.stderr}")
        return ran

    async def refused(self, *args: str, stdin: str | Mapping[str, Any] | None = None) -> str:
        """What kubectl says on stderr when the server must say no; AssertionError when it does not."""
        ran = await self(*args, stdin=stdin, check=False)
        assert ran.code != 0, f"kubectl {' '.join(args)} was accepted: {ran.stdout}"
        return ran.stderr
