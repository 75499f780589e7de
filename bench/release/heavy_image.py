"""A main image that takes seconds to unpack: made of many small files, put onto one node ready and onto one packed.

No registry is needed: containerd unpacks an image whose layers it has only when the first container of it is made, in
the very call by which the kubelet makes that container. Of most pulls of large images that is the longer part.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.release.cluster import POLL_INTERVAL, TIMEOUT, MeasuredCluster
from bench.release.methods import PREFIX
from bench.release.tools import ToolFailed, output

NAME = f"localhost/{PREFIX}:heavy"
FILES, BYTES, PER_FOLDER = 25_000, 16 * 1024, 500
WORDS = f"{FILES * BYTES // 10**6} MB in {FILES:,} files of {BYTES // 1024} KiB that do not compress"
_CTR = ("ctr", "--namespace", "k8s.io")


@dataclass(frozen=True, slots=True)
class HeavyImage:
    """The image, as an archive on the nodes that shall have to unpack it."""

    archive: str
    chain: str
    """The name of its topmost snapshot."""


async def made(base: str, nodes: tuple[str, ...]) -> HeavyImage:
    """Builds the image and puts its archive onto these nodes."""
    context = await asyncio.to_thread(_context, base)
    await output("docker", "build", "--quiet", "--tag", NAME, "-", stdin=context)
    layers = json.loads(await output("docker", "image", "inspect", NAME))[0]["RootFS"]["Layers"]
    archive = f"/{PREFIX}-heavy.tar"
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "image.tar")
        await output("docker", "save", "--output", file, NAME)
        for node in nodes:
            await output("docker", "cp", file, f"{node}:{archive}")
    return HeavyImage(archive, chain_of(layers))


async def unpacked(cluster: MeasuredCluster, heavy: HeavyImage, node: str) -> None:
    """Afterwards the node has it ready to run."""
    await cluster.on_node(node, *_CTR, "images", "import", heavy.archive)


async def packed(cluster: MeasuredCluster, heavy: HeavyImage, node: str) -> None:
    """Afterwards the node has its layers and must unpack them."""
    await removed(cluster, heavy, node)
    await cluster.on_node(node, *_CTR, "images", "import", "--no-unpack", heavy.archive)


async def removed(cluster: MeasuredCluster, heavy: HeavyImage, node: str) -> None:
    """Afterwards nothing of it is left; waits for the kubelet to take away containers that were made of it."""
    if NAME in (await cluster.on_node(node, *_CTR, "images", "ls", "--quiet")).split():
        # With all its other names, by which containerd would keep it; that many files take their time.
        await cluster.on_node(node, "crictl", "--timeout", "120s", "rmi", NAME)
    async with asyncio.timeout(TIMEOUT):
        while await _has(cluster, heavy, node):  # noqa: ASYNC110 - containerd tells nobody
            await asyncio.sleep(POLL_INTERVAL)


async def dropped(cluster: MeasuredCluster, heavy: HeavyImage, nodes: tuple[str, ...]) -> None:
    """Takes image and archive away again, everywhere."""
    for node in nodes:
        await removed(cluster, heavy, node)
        await cluster.on_node(node, "rm", "-f", heavy.archive)
    await output("docker", "rmi", NAME)


def chain_of(layers: list[str]) -> str:
    """How containerd names the snapshot of these layers on top of each other (the image specification's ChainID)."""
    chain = layers[0]
    for layer in layers[1:]:
        chain = "sha256:" + hashlib.sha256(f"{chain} {layer}".encode()).hexdigest()
    return chain


async def _has(cluster: MeasuredCluster, heavy: HeavyImage, node: str) -> bool:
    try:
        await cluster.on_node(node, *_CTR, "snapshots", "info", heavy.chain)
    except ToolFailed as said:
        if "not found" in str(said):
            return False
        raise
    return True


def _context(base: str) -> bytes:
    """What `docker build` is given: a Dockerfile, and the files as an archive that it unpacks into the image."""
    return _tar({"Dockerfile": f"FROM {base}\nADD files.tar /\n".encode(), "files.tar": _tar(_files())})


def _files() -> dict[str, bytes]:
    chance = random.Random(1)  # noqa: S311 - to be the same each time
    return {f"heavy/{number // PER_FOLDER}/{number}": chance.randbytes(BYTES) for number in range(FILES)}


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info: Any = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
