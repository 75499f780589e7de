"""A release: archives and image layouts have the same bytes twice, and workflows call what is there.

That all artefacts are the same twice is shown by `make release-dry-run`, which needs docker.
"""

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import archive, artifacts, oci
from release.__main__ import STEPS
from tests.repo.files import ROOT
from tests.tools.catalog import helm

EPOCH = 1_700_000_000
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))


def tarred(*members: tuple[str, bytes, float]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data, mtime in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = mtime
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def saved_image(built_at: float) -> bytes:
    """As `docker save` writes it: a base layer, and one that was built at some time."""
    base, ours = tarred(("bin/sh", b"sh", 1.0)), tarred(("opt/x", b"x", 1.0), ("opt/y", b"y", built_at))
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": f"built at {built_at}",
        "container": f"{built_at}",
        "config": {"User": "65532:65532", "Image": f"sha256:{built_at}", "Entrypoint": ["jobset-gate"]},
    }
    manifest = [{"Config": "config.json", "Layers": ["0/layer.tar", "1/layer.tar"]}]
    return tarred(
        ("config.json", json.dumps(config).encode(), built_at),
        ("manifest.json", json.dumps(manifest).encode(), built_at),
        ("0/layer.tar", base, built_at),
        ("1/layer.tar", ours, built_at),
    )


def test_an_image_that_is_built_twice_has_one_digest(tmp_path: Path) -> None:
    saved, made = tmp_path / "saved", tmp_path / "oci.tar"
    found = set()
    for built_at in (EPOCH + 10.25, EPOCH + 99.5):
        saved.write_bytes(saved_image(built_at))
        oci.write(made, [saved], base_layers=1, epoch=EPOCH, name="jobset-gate:1")
        found.add(made.read_bytes())
    assert len(found) == 1


def test_an_archive_depends_on_names_modes_and_contents_alone(tmp_path: Path) -> None:
    made = []
    for order in (("a", "b"), ("b", "a")):
        folder = tmp_path / order[0]
        folder.mkdir()
        for name in order:
            (folder / name).write_text(name)
        (folder / "a").chmod(0o700)
        (folder / "link").symlink_to("a")
        file = tmp_path / f"{order[0]}.tar.gz"
        archive.pack(file, archive.files(folder), epoch=EPOCH)
        made.append(file.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as tar:
        assert {it.name: oct(it.mode) for it in tar} == {"a": "0o755", "b": "0o644", "link": "0o777"}


def test_the_chart_of_a_release_installs_its_own_image_by_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    digest = "sha256:" + "ab" * 32
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "image.digest").write_text(digest + "\n")
        artifacts.chart(folder, "registry.example/team", str(helm(4)))
        made.append((folder / f"jobset-gate-{artifacts.version()}.tgz").read_bytes())
    assert made[0] == made[1]
    (tmp_path / "chart.tgz").write_bytes(made[0])
    rendered = artifacts.run(helm(4), "template", "x", tmp_path / "chart.tgz", "--namespace", "n")
    images = set(re.findall(r"image: \"?([^\s\"]*jobset-gate[^\s\"]*)", rendered))
    assert images == {f"registry.example/team/jobset-gate@{digest}"}


def test_krews_manifest_names_every_platform_with_its_hash(tmp_path: Path) -> None:
    for platform in ("linux-amd64", "darwin-arm64"):
        (tmp_path / f"kubectl-jobset_gate-1.2.3-{platform}.tar.gz").write_bytes(platform.encode())
    artifacts.krew(tmp_path, "https://forge.example/o/r/releases/download/v1")
    manifest = yaml.safe_load((tmp_path / "jobset-gate.krew.yaml").read_text())
    assert manifest["spec"]["homepage"] == "https://forge.example/o/r"
    assert [(it["selector"]["matchLabels"], it["sha256"]) for it in manifest["spec"]["platforms"]] == [
        ({"os": "darwin", "arch": "arm64"}, hashlib.sha256(b"darwin-arm64").hexdigest()),
        ({"os": "linux", "arch": "amd64"}, hashlib.sha256(b"linux-amd64").hexdigest()),
    ]
    with pytest.raises(artifacts.StepFailed, match="run the step `plugin` first"):
        artifacts.krew(tmp_path / "..", "https://forge.example/o/r")


def steps() -> list[dict[str, Any]]:
    jobs = [job for file in WORKFLOWS for job in yaml.safe_load(file.read_text())["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


def test_every_action_is_named_by_its_commit_and_every_workflow_says_its_rights() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert [it for it in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", it)] == []
    for file in WORKFLOWS:
        assert "permissions" in yaml.safe_load(file.read_text()), file


def test_every_step_of_a_workflow_calls_what_the_repository_has() -> None:
    ran = " ".join(step["run"] for step in steps() if "run" in step)
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([\w-]+)", ran)) <= targets
    assert [it for it in re.findall(r"(?:^|\s)((?:release|\.ci)/\w+)", ran) if not (ROOT / it).exists()] == []
    calls = re.findall(r"python -m release ((?:[a-z]+ ?)+)", ran)
    assert calls
    done = {word for call in calls for word in call.split() if word in STEPS}
    assert done == set(STEPS)
