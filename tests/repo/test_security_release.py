"""The scripts of a release: the SBOM names all that is locked; what is signed, in which order, and what is refused.

cosign is a stand-in that writes down its arguments: whether real signatures verify is tried by hand at a release.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.repo.files import ROOT

SBOM, SIGN = ROOT / "release" / "sbom", ROOT / "release" / "sign"
DIGEST = "sha256:" + "ab" * 32
IMAGE, CHART = f"registry.example/jobset-gate@{DIGEST}", f"oci://registry.example/charts/jobset-gate@{DIGEST}"


def run(script: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("COSIGN", "SOURCE_DATE"))}
    return subprocess.run([script, *args], env=clean | env, capture_output=True, text=True, check=False)  # noqa: S603


def made_sbom(file: Path, **env: str) -> dict[str, Any]:
    ran = run(SBOM, str(file), **env)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(file.read_text()))


def test_the_sbom_is_of_our_program_and_names_every_locked_package_with_its_hashes(tmp_path: Path) -> None:
    """Made twice, once of a dated build, it is the same but for the date."""
    sbom = made_sbom(tmp_path / "plain")
    dated = made_sbom(tmp_path / "dated", SOURCE_DATE_EPOCH="1700000000")
    assert dated["metadata"].pop("timestamp").startswith("2023-11-14T22:13:20")
    assert dated == sbom
    lock = (ROOT / "requirements" / "image.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9._-]+)==([^ \\]+)", lock, re.MULTILINE))
    assert locked
    assert {(one["name"], one["version"]) for one in sbom["components"]} == locked
    hashes = {
        each["content"]
        for component in sbom["components"]
        for reference in component["externalReferences"]
        for each in reference["hashes"]
    }
    assert hashes == set(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    subject = sbom["metadata"]["component"]
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert (subject["name"], subject["version"], subject["type"]) == ("jobset-gate", version[1], "application")
    assert not {"timestamp", "serialNumber"} & (sbom.keys() | sbom["metadata"].keys())


class Signing:
    """A folder with files to sign, and a cosign that writes down its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._asked = folder, folder / "asked"
        (folder / "cosign").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self._asked}\n')
        (folder / "cosign").chmod(0o755)
        self.files = [str(folder / name) for name in ("sbom.json", "jobset_gate.whl")]
        for file in self.files:
            Path(file).write_text("something")

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(SIGN, *args, PATH=f"{self.folder}:{os.environ['PATH']}", **env)

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text().splitlines() if self._asked.exists() else []


@pytest.fixture
def signing(tmp_path: Path) -> Signing:
    return Signing(tmp_path)


def test_image_chart_and_every_file_are_signed(signing: Signing) -> None:
    sbom, wheel = signing.files
    assert signing.run(IMAGE, CHART, sbom, wheel).returncode == 0
    assert signing.asked == [
        f"sign --yes {IMAGE}",
        f"attest --yes --type cyclonedx --predicate {sbom} {IMAGE}",
        f"sign --yes {CHART.removeprefix('oci://')}",
        f"sign-blob --yes --bundle {sbom}.sigstore.json {sbom}",
        f"sign-blob --yes --bundle {wheel}.sigstore.json {wheel}",
    ]


def test_a_key_signs_everything_and_its_public_half_verifies_it(signing: Signing) -> None:
    for verb in ((), ("--verify",)):
        assert signing.run(*verb, IMAGE, "-", *signing.files, COSIGN_KEY="awskms:///alias/release").returncode == 0
    assert len(signing.asked) == 4 + 4
    assert all(" --key awskms:///alias/release " in line for line in signing.asked)
    verbs = [line.split()[0] for line in signing.asked[4:]]
    assert verbs == ["verify", "verify-attestation", "verify-blob", "verify-blob"]


def test_without_a_key_verifying_needs_the_identity_of_the_signer(signing: Signing) -> None:
    """Anyone can sign anything: a signature alone proves nothing."""
    ran = signing.run("--verify", IMAGE, CHART, *signing.files)
    assert ran.returncode != 0
    assert "whose signature" in ran.stderr
    assert signing.asked == []
    whose = {"COSIGN_IDENTITY": "release@example.com", "COSIGN_ISSUER": "https://issuer.example"}
    assert signing.run("--verify", IMAGE, CHART, *signing.files, **whose).returncode == 0
    identity = "--certificate-identity release@example.com --certificate-oidc-issuer https://issuer.example"
    assert all(f" {identity} " in line for line in signing.asked)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected IMAGE"),
        (("registry.example/jobset-gate:0.1.0", CHART, "sbom"), "not by its digest"),
        ((IMAGE, "oci://registry.example/charts/jobset-gate:0.1.0", "sbom"), "not by its digest"),
        (("-", CHART, "sbom"), "no release without an image"),
        ((IMAGE, CHART, "there-is-none"), "no such file"),
    ],
)
def test_what_cannot_be_signed_is_refused_before_anything_is(
    signing: Signing, arguments: tuple[str, ...], words: str
) -> None:
    ran = signing.run(*(signing.files[0] if word == "sbom" else word for word in arguments))
    assert ran.returncode == 2
    assert words in ran.stderr
    assert signing.asked == []
