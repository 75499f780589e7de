"""The two images of real programs and those that given manifests name, in docker and on kind's nodes."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from e2e import commands, images
from e2e.cluster import CONTROL_PLANE, E2eCluster

HERE: Final = Path(__file__).parent
BUILD: Final = HERE / "images"
SOURCES: Final = (BUILD, HERE / "wheels.txt", *sorted((HERE / "mpi").iterdir()))
TAG: Final = hashlib.sha256(b"".join(file.read_bytes() for file in SOURCES)).hexdigest()[:12]
PYTHON: Final = f"localhost/jobset-gate-programs-python:{TAG}"
MPI: Final = f"localhost/jobset-gate-programs-mpi:{TAG}"
BUILD_SECONDS: Final = 1800.0


@contextmanager
def made(*, keep: bool) -> Iterator[None]:
    """Afterwards docker no longer has them, unless `keep`. Raises commands.CommandFailed."""
    try:
        if not all(commands.works("docker", "image", "inspect", image) for image in (PYTHON, MPI)):
            print("programs: making their images of Debian's packages and PyPI's wheels (some minutes)", flush=True)
            if os.geteuid() != 0:
                raise commands.CommandFailed("only root on Debian can make the images of real programs")
            with TemporaryDirectory() as folder:
                commands.run(str(BUILD), folder, PYTHON, MPI, seconds=BUILD_SECONDS)
        yield
    finally:
        if not keep:
            for image in (PYTHON, MPI):
                images.forget(image)


def load(cluster: E2eCluster, *manifests: str) -> None:
    """Those that these files name, as far as docker has them, on all nodes; ours, which are large, on workers alone."""
    text = "".join(Path(file).read_text(encoding="utf-8") for file in manifests if Path(file).is_file())
    images.load(cluster, *sorted(set(re.findall(r"\bimage: (\S+)", text))))
    workers = (node for node in cluster.nodes() if CONTROL_PLANE not in node["metadata"]["labels"])
    names = ",".join(str(node["metadata"]["name"]) for node in workers)
    for image in (PYTHON, MPI):
        print(f"image: loading {image}", flush=True)
        images.load_onto(cluster.kind, names, image)


def versions(image: str) -> str:
    """Of the packages in it, each with its day."""
    said = commands.run("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", image)
    return str(json.loads(said)["versions"])


def wheels() -> str:
    """Those of JAX, each with its day."""
    locked = re.findall(r"^(jax\w*)==(\S+) .*# (\S+)$", (HERE / "wheels.txt").read_text(), re.MULTILINE)
    return ", ".join(f"{name} {version} of {day}" for name, version, day in locked)
