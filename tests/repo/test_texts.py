"""What no file of the project may say, and how long a file may be."""

import re
from pathlib import Path

from tests.repo.files import ROOT, shipped, tracked

# Put together from pieces, so that this file does not say them itself.
FORBIDDEN = {
    "the host of a package registry": "|".join(
        ("py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.", "proxy" + r"\.golang\.org", "crates" + r"\.io")
    ),
    "the host of a container registry": "|".join(
        (r"\bdocker" + r"\.io/", "registry" + r"\.k8s\.io", *(rf"\b{it}" + r"\.io" for it in ("gcr", "quay", "ghcr")))
    ),
    # mpiuser lives in the image of examples/mpi.yaml.
    "a folder of one machine": r"(?<![\w.$}~/-])/(?:"
    + "|".join(("ro" + "ot", "wo" + "rk", r"ho" + r"me/(?!mpiuser/)\w+"))
    + ")/",
    "work left undone": r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b",
}
LONGEST = 400  # lines; around 150 is what we aim at


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        try:
            found.append((path, path.read_text()))
        except UnicodeDecodeError:  # a picture or an archive
            continue
    return found


def test_no_file_says_what_is_forbidden() -> None:
    patterns = {what: re.compile(pattern) for what, pattern in FORBIDDEN.items()}
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:120]}"
        for path, text in texts()
        for what, pattern in patterns.items()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert hits == []


def test_every_shipped_file_says_its_job_first_and_is_not_long() -> None:
    """An empty file has none."""
    silent = [path for path in shipped() if (text := path.read_text().strip()) and not text.startswith(('"""', 'r"""'))]
    assert [str(path.relative_to(ROOT)) for path in silent] == []
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in shipped()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}
