"""JobSet in the cluster: what is there, the real one's release manifests, or our stand-in."""

import base64
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Final

from e2e import commands, images, templates
from e2e.cluster import E2eCluster
from jobset_gate import names

VERSION: Final = "v0.12.0"
RELEASE: Final = f"https://github.com/kubernetes-sigs/jobset/releases/download/{VERSION}/manifests.yaml"
NAMESPACE: Final = "jobset-system"
STAND_IN: Final = "jobset-standin"
ROOT: Final = Path(__file__).parents[1]
DOWNLOAD_SECONDS: Final = 30.0
READY_SECONDS: Final = 240


def install(cluster: E2eCluster, image: str, steady_node: dict[str, str]) -> bool:
    """Returns whether it is the stand-in. JOBSET_MANIFESTS names a file or URL, or says `stand-in`."""
    given = os.environ.get("JOBSET_MANIFESTS", "")
    if not given and stands(cluster):
        return _is_stand_in(cluster)
    if not given and not commands.works(
        "curl", "--fail", "--silent", "--location", "--head", RELEASE, seconds=DOWNLOAD_SECONDS
    ):
        print("jobset: its release cannot be had here, our stand-in plays it")
        given = "stand-in"
    if given == "stand-in":
        _stand_in(cluster, image, steady_node)
    else:
        apply_release(cluster, given or RELEASE, NAMESPACE, steady_node)
    for state in ("create", "condition=Established"):
        limit = f"--timeout={READY_SECONDS}s"
        cluster.kubectl("wait", f"--for={state}", f"crd/{names.JOBSET_CRD}", limit, seconds=READY_SECONDS + 10)
    return given == "stand-in"


def uninstall(cluster: E2eCluster, *, stand_in: bool) -> None:
    """What `install` has put there."""
    print("jobset: taking it away", flush=True)
    if not stand_in:
        given = os.environ.get("JOBSET_MANIFESTS") or RELEASE
        cluster.kubectl("delete", "--ignore-not-found", "-f", given, seconds=READY_SECONDS)
        return
    cluster.remove_crds(names.JOBSET_CRD)
    manifest = templates.filled("jobset-standin.yaml", IMAGE="", BUILD="", CODE="", STEADY_NODE={})
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=manifest, seconds=READY_SECONDS)


def stands(cluster: E2eCluster) -> bool:
    """Whether the cluster knows JobSets."""
    found = cluster.kubectl("get", "crd", names.JOBSET_CRD, "--ignore-not-found", "--output=name")
    return bool(found.strip())


def _is_stand_in(cluster: E2eCluster) -> bool:
    found = cluster.kubectl("get", "deployment", "-n", NAMESPACE, STAND_IN, "--ignore-not-found", "--output=name")
    print("jobset: " + ("our stand-in is there" if found.strip() else "is there"))
    return bool(found.strip())


def apply_release(cluster: E2eCluster, manifests: str, namespace: str, steady_node: dict[str, str]) -> None:
    """A controller's release manifests, a file or URL; its pods go to the steady node, and are ready afterwards."""
    shown = Path(manifests).name if Path(manifests).exists() else manifests
    print(f"{namespace}: {shown}", flush=True)
    # CRDs are too large for the annotation of a client-side apply.
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", manifests)
    pod = {"nodeSelector": steady_node, "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}
    patch = json.dumps({"spec": {"template": {"spec": pod}}})
    for deployment in cluster.kubectl("get", "deployments", "-n", namespace, "--output=name").split():
        cluster.kubectl("patch", "-n", namespace, deployment, "--patch", patch)
    _roll_out(cluster, namespace)


def _stand_in(cluster: E2eCluster, image: str, steady_node: dict[str, str]) -> None:
    print("jobset: installing our stand-in", flush=True)
    code = stand_in_code()
    build = f"{images.identity(image)} {hashlib.sha256(code).hexdigest()}"
    manifest = templates.filled(
        "jobset-standin.yaml", IMAGE=image, BUILD=build, CODE=base64.b64encode(code).decode(), STEADY_NODE=steady_node
    )
    cluster.kubectl("apply", "-f", "-", stdin=manifest)
    _roll_out(cluster, NAMESPACE)


def stand_in_code() -> bytes:
    """Program and embedded cluster as a zip file: the image holds neither. The same code gives the same bytes."""
    file = io.BytesIO()
    package = ROOT / "jobset_gate_demo"
    paths = [package / "__init__.py", *sorted((package / "fake").rglob("*.py"))]
    fake = {str(path.relative_to(ROOT)): path for path in paths}
    with zipfile.ZipFile(file, "w") as archive:
        for name, path in {"standin.py": ROOT / "e2e/standin.py", **fake}.items():
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _roll_out(cluster: E2eCluster, namespace: str) -> None:
    limit = f"--timeout={READY_SECONDS}s"
    cluster.kubectl("rollout", "status", "deployment", "-n", namespace, limit, seconds=READY_SECONDS + 10)
