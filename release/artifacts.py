"""The steps of a release: each writes files into one folder. Only the image needs a network, for its packages."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from release import archive, oci

ROOT: Final = Path(__file__).parents[1]
_PYTHON: Final = sys.executable
_DESCRIPTION: Final = """\
Shows gangs of JobSets and pod groups: which pods are missing and why, the time left, and timelines.
It reads the cluster with your own rights; the controller does not have to run.
"""


class StepFailed(Exception):
    """A program that a step needs is missing, or has failed; the message has its last words."""


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """What a program prints. Raises StepFailed."""
    words = [str(word) for word in command]
    if not shutil.which(words[0]):
        raise StepFailed(f"{words[0]} is not installed")
    ran = subprocess.run(words, cwd=cwd, env=os.environ | env, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode != 0:
        raise StepFailed(f"{' '.join(words)}: exit code {ran.returncode}\n{(ran.stdout + ran.stderr)[-2000:]}")
    return ran.stdout


def version() -> str:
    found = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def epoch() -> int:
    """The time of the commit, in Unix seconds: the only date in any artefact."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))


def wheels(folder: Path) -> None:
    """The wheel, the source distribution, and the wheel of the extra `demo`."""
    date = str(epoch())
    build = (_PYTHON, "-m", "build", "--no-isolation", "--outdir", folder)
    run(*build, "--wheel", "--sdist", ROOT, SOURCE_DATE_EPOCH=date)
    run(*build, "--wheel", ROOT / "release/demo", SOURCE_DATE_EPOCH=date)


def sbom(folder: Path) -> None:
    """CycloneDX 1.6 of the wheel and the image."""
    file = folder / f"jobset-gate-{version()}.cdx.json"
    run(
        ROOT / "release/sbom",
        file,
        SOURCE_DATE_EPOCH=str(epoch()),
        CYCLONEDX=str(Path(_PYTHON).with_name("cyclonedx-py")),
    )


def image(folder: Path, platforms: Sequence[str], base: str = "") -> str:
    """The image of all platforms as an OCI layout; returns its digest. Needs docker, and the base image.

    No platforms: that of the docker daemon.
    """
    base = base or _default_base()
    base_layers = 0
    with tempfile.TemporaryDirectory() as temporary:
        saved = []
        for number, platform in enumerate(platforms or [""]):
            tag = f"jobset-gate-release:{number}"
            options = f"--no-cache --platform={platform}" if platform else "--no-cache"
            run(
                "make", "image", f"IMAGE={tag}", f"BASE={base}", f"BUILD_OPTIONS={options}", MACHINES=_machine(platform)
            )
            layers = run("docker", "image", "inspect", "--format", "{{len .RootFS.Layers}}", base)
            base_layers = int(layers)
            saved.append(Path(temporary) / f"{number}.tar")
            run("docker", "save", "--output", saved[-1], tag)
        name = f"jobset-gate:{version()}"
        digest = oci.write(
            folder / f"jobset-gate-{version()}.oci.tar", saved, base_layers=base_layers, epoch=epoch(), name=name
        )
    (folder / "image.digest").write_text(digest + "\n")
    return digest


def _default_base() -> str:
    found = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found
    return found[1]


def _machine(platform: str) -> str:
    """As wheels call it."""
    return {"linux/amd64": "x86_64", "linux/arm64": "aarch64", "": ""}[platform]


def chart(folder: Path, registry: str, helm: str) -> None:
    """The packed chart; its default image is the one of this release, by `image.digest`, in `registry`."""
    digest = (folder / "image.digest").read_text().strip()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "jobset-gate"
        shutil.copytree(ROOT / "charts/jobset-gate", copy)
        values = copy / "values.yaml"
        text = values.read_text()
        for old, new in (
            ('  registry: ""\n', f"  registry: {registry}\n"),
            ('  digest: ""\n', f"  digest: {digest}\n"),
        ):
            before, found, after = text.partition(old)
            assert found, old
            text = before + new + after
        values.write_text(text)
        written = yaml.safe_load(text)["image"]
        assert (written["registry"], written["digest"]) == (registry, digest)
        run(helm, "lint", "--strict", copy)
        run(helm, "package", "--destination", folder, copy)
    archive.repack(folder / f"jobset-gate-{version()}.tgz", epoch=epoch())


def plugin(folder: Path) -> None:
    """The command line with its own Python for this machine, as a .tar.gz for krew. Needs PyInstaller."""
    name = f"kubectl-jobset_gate-{version()}-{_this_platform()}"
    with tempfile.TemporaryDirectory() as temporary:
        start = Path(temporary) / "kubectl-jobset_gate.py"
        start.write_text("import sys\n\nfrom jobset_gate.cli.main import main\n\nsys.exit(main())\n")
        command = [_PYTHON, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", "--onedir", "--console", "--strip"]
        command += ["--paths", str(ROOT), "--collect-data=jobset_gate", "--collect-submodules=jobset_gate"]
        command += ["--collect-submodules=rich._unicode_data", "--exclude-module=jobset_gate_demo"]
        command += ["--exclude-module=opentelemetry"]  # The controller's, an extra.
        command += [
            "--distpath",
            f"{temporary}/dist",
            "--workpath",
            f"{temporary}/work",
            "--specpath",
            temporary,
            str(start),
        ]
        run(*command, SOURCE_DATE_EPOCH=str(epoch()), PYTHONHASHSEED="0")
        made = Path(temporary) / "dist/kubectl-jobset_gate"
        run(made / "kubectl-jobset_gate", "--version")
        complete = Path(temporary) / "kubectl_complete-jobset_gate"
        complete.write_text('#!/bin/sh\nexec kubectl jobset-gate __complete "$@"\n')
        complete.chmod(0o755)
        members = [*archive.files(made), (complete.name, complete), ("LICENSE", ROOT / "LICENSE")]
        archive.pack(folder / f"{name}.tar.gz", members, epoch=epoch())


def _this_platform() -> str:
    """`linux-amd64`, as krew says it."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return f"{sys.platform}-{machine}"


def krew(folder: Path, url: str) -> None:
    """Krew's manifest of the plugin's archives in the folder; `url` is where they will lie."""
    platforms = []
    for file in sorted(folder.glob("kubectl-jobset_gate-*.tar.gz")):
        system, machine = file.name.removesuffix(".tar.gz").rsplit("-", 2)[-2:]
        platforms.append(
            {
                "selector": {"matchLabels": {"os": system, "arch": machine}},
                "uri": f"{url}/{file.name}",
                "sha256": _sha256(file),
                "bin": "kubectl-jobset_gate",
            }
        )
    if not platforms:
        raise StepFailed("no archive of the plugin: run the step `plugin` first")
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "jobset-gate"},
        "spec": {
            "version": f"v{version()}",
            "homepage": url.partition("/releases/")[0],
            "shortDescription": "Explain why a gang of a JobSet still waits",
            "description": _DESCRIPTION,
            "platforms": platforms,
        },
    }
    (folder / "jobset-gate.krew.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False, width=1000))


def checksums(folder: Path) -> None:
    """SHA256SUMS of all files, and release.json: which image, chart and plugin belong together."""
    found = {
        file.name: _sha256(file) for file in sorted(folder.iterdir()) if file.name not in ("SHA256SUMS", "release.json")
    }
    digest = folder / "image.digest"
    facts = {"version": version(), "image": digest.read_text().strip() if digest.exists() else None, "files": found}
    (folder / "release.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
    found["release.json"] = _sha256(folder / "release.json")
    (folder / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in found.items()))


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
