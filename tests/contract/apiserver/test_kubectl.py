"""The real kubectl works with both planes."""

from __future__ import annotations

from tests.plane.planes import Plane

MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata:
  name: work
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox:1.37
        env:
        - {{name: SIZE, value: "{size}"}}
        - {{name: COLOUR, value: red}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  size: "{size}"
"""


async def test_apply_get_patch_and_delete(plane: Plane, namespace: str) -> None:
    kubectl = plane.kubectl
    made = await kubectl("-n", namespace, "apply", "-f", "-", stdin=MANIFEST.format(size=1))
    assert made.stdout.splitlines() == ["job.batch/work created", "configmap/settings created"]
    again = await kubectl("-n", namespace, "apply", "-f", "-", stdin=MANIFEST.format(size=1))
    assert again.stdout.splitlines() == ["job.batch/work unchanged", "configmap/settings unchanged"]
    changed = await kubectl("-n", namespace, "apply", "-f", "-", stdin=MANIFEST.format(size=2).partition("---")[2])
    assert changed.stdout.strip() == "configmap/settings configured"
    await kubectl("-n", namespace, "patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"more":"yes"}}')
    await kubectl("-n", namespace, "label", "configmap/settings", "team=x")
    seen = (await kubectl("-n", namespace, "get", "configmap", "-l", "team=x", "-o", "json")).json
    assert seen["items"][0]["data"] == {"size": "2", "more": "yes"}
    await kubectl("-n", namespace, "delete", "job/work", "configmap/settings")
    left = await kubectl("-n", namespace, "get", "job,configmap", "-l", "team=x", "-o", "name")
    assert left.stdout == ""


async def test_a_running_job_cannot_be_given_another_template(plane: Plane, namespace: str) -> None:
    await plane.kubectl("-n", namespace, "apply", "-f", "-", stdin=MANIFEST.format(size=1))
    said = await plane.kubectl.refused("-n", namespace, "apply", "-f", "-", stdin=MANIFEST.format(size=2))
    assert "field is immutable" in said


async def test_apply_on_the_servers_side(plane: Plane, namespace: str) -> None:
    kubectl = plane.kubectl
    for expected in ("serverside-applied", "serverside-applied"):
        ran = await kubectl("-n", namespace, "apply", "--server-side", "-f", "-", stdin=MANIFEST.format(size=1))
        assert ran.stdout.count(expected) == 2
    other = ["-n", namespace, "apply", "--server-side", "--field-manager=other", "-f", "-"]
    said = await kubectl.refused(*other, stdin=MANIFEST.format(size=2).partition("---")[2])
    assert 'conflict with "kubectl": .data.size' in said


async def test_wait_for_a_condition(plane: Plane, namespace: str) -> None:
    kubectl = plane.kubectl
    await kubectl("-n", namespace, "run", "p", "--image=busybox:1.37")
    status = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    await kubectl("-n", namespace, "patch", "pod", "p", "--subresource=status", "--type=merge", "-p", status)
    await kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    await kubectl("-n", namespace, "delete", "pod", "p", "--wait=true", "--timeout=20s")
