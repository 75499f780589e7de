"""From images of `docker save` to one OCI image layout, whose digest is known before anything is pushed.

Layers of the base image stay as they are. In ours, and in the image's config, no time is later than the commit's, so
another build of the same commit has the same digest. Format: OCI image-spec 1.1, image-layout.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.archive import compressed

Json = dict[str, Any]
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_KEPT = ("architecture", "os", "variant", "config")
"""Of a config; the rest says which container docker built it in, and when."""


@dataclass(slots=True)
class Layout:
    """The blobs of an image layout by their digests."""

    blobs: dict[str, bytes] = field(default_factory=dict)

    def add(self, media_type: str, data: bytes) -> Json:
        """Stores a blob; returns its descriptor."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def add_json(self, media_type: str, value: Json) -> Json:
        return self.add(media_type, json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def clamped(layer: bytes, epoch: int) -> bytes:
    """A layer's tar with no modification time after `epoch`."""
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(layer)) as old,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in old:
            member.mtime = min(int(member.mtime), epoch)
            member.pax_headers = {key: value for key, value in member.pax_headers.items() if not key.endswith("time")}
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()


def add_image(layout: Layout, saved: Path, *, base_layers: int, epoch: int) -> Json:
    """Adds one image of `docker save`; returns the descriptor of its manifest, with its platform.

    The first `base_layers` layers are those of the base image.
    """
    with tarfile.open(saved) as tar:

        def read(name: str) -> bytes:
            member = tar.extractfile(name)
            assert member is not None, name
            return member.read()

        (manifest,) = json.loads(read("manifest.json"))
        old = json.loads(read(manifest["Config"]))
        layers = [read(name) for name in manifest["Layers"]]
    layers[base_layers:] = [clamped(layer, epoch) for layer in layers[base_layers:]]
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = {key: old[key] for key in _KEPT if old.get(key)}
    config["config"] = {key: value for key, value in config.get("config", {}).items() if value and key != "Image"}
    config["created"] = created
    config["rootfs"] = {
        "type": "layers",
        "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers],
    }
    platform = {key: config[key] for key in ("architecture", "os", "variant") if key in config}
    found = layout.add_json(
        _MANIFEST,
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": layout.add_json(_CONFIG, config),
            "layers": [layout.add(_LAYER, compressed(layer)) for layer in layers],
        },
    )
    return {**found, "platform": platform}


def write(file: Path, saved: Sequence[Path], *, base_layers: int, epoch: int, name: str) -> str:
    """Writes the images, one for each platform, as one layout (a tar); returns the digest of their index."""
    layout = Layout()
    manifests = [add_image(layout, each, base_layers=base_layers, epoch=epoch) for each in saved]
    manifests.sort(key=lambda it: json.dumps(it["platform"], sort_keys=True))
    index = layout.add_json(_INDEX, {"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests})
    entry = {**index, "annotations": {"org.opencontainers.image.ref.name": name}}
    top = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}
    members = {f"blobs/sha256/{digest.removeprefix('sha256:')}": data for digest, data in layout.blobs.items()}
    members["index.json"] = json.dumps(top, sort_keys=True).encode()
    members["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(members.items()):
            info = tarfile.TarInfo(path)
            info.size, info.mtime = len(data), epoch
            tar.addfile(info, io.BytesIO(data))
    return str(index["digest"])
