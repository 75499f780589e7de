"""The images of the suite, on every node in time: ours, and a small one for barriers and main containers."""

import fcntl
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e import commands
from e2e.cluster import E2eCluster
from jobset_gate.injection import prefetch
from jobset_gate.settings import DEFAULT_IMAGE

NAME: Final = "localhost/jobset-gate"
LATEST: Final = f"{NAME}:e2e"
"""The last one built: keeps the layers that the next build needs again."""
ROOT: Final = Path(__file__).parents[1]
PROGRAM: Final = "done"
BUILD_SECONDS: Final = 900.0
LOAD_SECONDS: Final = 300.0


def ours(tag: str = "e2e") -> str:
    """IMAGE, or what is built from this checkout. The tag is for runs of several checkouts on one machine."""
    given = os.environ.get("IMAGE")
    if given:
        return given
    image = f"{NAME}:{tag}"
    print(f"image: building {image}", flush=True)
    base = os.environ.get("LOCAL_PYTHON_IMAGE")
    build = ["make", "-C", str(ROOT), "--no-print-directory", "image", f"IMAGE={image}"]
    with _alone():
        commands.run(*build, *([f"BASE={base}"] if base else []), seconds=BUILD_SECONDS)
    if image != LATEST:
        commands.run("docker", "tag", image, LATEST)
    return image


@contextmanager
def _alone() -> Iterator[None]:
    """One build at a time: all of one checkout collect their wheels in the same folder."""
    lock = ROOT / "build" / "image.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def small() -> str:
    """BARRIER_IMAGE, or the one made where nothing can be pulled, or the default of the settings."""
    return os.environ.get("BARRIER_IMAGE") or os.environ.get("LOCAL_BUSYBOX_IMAGE") or DEFAULT_IMAGE


def identity(image: str) -> str:
    """What changes with its content: a Deployment that carries it is rolled out when the image was built again."""
    code, out, _ = commands.outcome("docker", "image", "inspect", "--format", "{{.Id}}", image)
    return out.strip() if code == 0 else image


def parts(image: str) -> dict[str, str]:
    """Its name as the chart's values take it. What docker takes for a registry is one here, too."""
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    registry = first if slash and ("." in first or ":" in first or first == "localhost") else ""
    path, _, tag = (rest if registry else name).partition(":")
    return {"registry": registry, "repository": path, "tag": tag, "digest": digest}


def load(cluster: E2eCluster, *images: str) -> None:
    """Onto kind's nodes, as far as docker has them here; other clusters pull."""
    here = [image for image in images if cluster.kind and commands.works("docker", "image", "inspect", image)]
    if here:
        print(f"image: loading {', '.join(here)}", flush=True)
        commands.run("kind", "load", "docker-image", "--name", cluster.kind, *here, seconds=LOAD_SECONDS)


def load_as(cluster: E2eCluster, image: str, name: str) -> None:
    """Onto kind's nodes under another name, which nothing can be pulled by here: examples then run as they are."""
    print(f"image: loading {image} as {name}, which cannot be pulled here", flush=True)
    commands.run("docker", "tag", image, name)
    commands.run("kind", "load", "docker-image", "--name", cluster.kind, name, seconds=LOAD_SECONDS)
    commands.run("docker", "image", "rm", name)  # the name alone


def other_tag(name: str) -> str:
    """An image that no node and no registry has, of one program that ends at once, and no shell. Needs docker."""
    image = f"localhost/{name}:1"
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(suffix=".tar") as file:
        subprocess.run(prefetch.copy_command(), env={**os.environ, "JOBSET_GATE_DIR": folder}, check=True)
        with tarfile.open(fileobj=file, mode="w") as layer:
            layer.add(f"{folder}/true", PROGRAM)
        file.flush()
        commands.run("docker", "import", "--change", f'ENTRYPOINT ["/{PROGRAM}"]', file.name, image)
    return image


def load_onto(kind: str, node: str, image: str) -> None:
    """Onto one node of a kind cluster only."""
    commands.run("kind", "load", "docker-image", "--name", kind, "--nodes", node, image, seconds=LOAD_SECONDS)


def forget(image: str) -> None:
    """Away from docker, if it is there; nodes keep theirs."""
    if commands.works("docker", "image", "inspect", image):
        commands.run("docker", "image", "rm", "--force", image)
