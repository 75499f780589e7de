"""The barrier's rule in Python against barrier.sh itself."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jobset_gate import names
from jobset_gate_demo.fake.kubelet.barrier import BarrierExit, BarrierIdentity, exit_at_limit, read_verdict
from tests.fakes.barrier_process import barrier_process

OWN = BarrierIdentity(uid="u1", attempt="2", epoch="3", limit=0.0)
CASES = {
    "its own release": ("release u1 2 3 AllPodsStarted\n", BarrierExit(0)),
    "a release of a later epoch": ("release u1 2 4 AllPodsStarted\n", BarrierExit(0)),
    "a release without a newline": ("release u1 2 3 AllPodsStarted", BarrierExit(0)),
    "a carriage return behind the epoch": ("release u1 2 3\r\n", None),
    "blanks between the words": (" release\tu1  2 3 AllPodsStarted\n", BarrierExit(0)),
    "its own timeout": ("timeout u1 2 3 TimedOut\n297/300 started\nmore\n", BarrierExit(124, "297/300 started\nmore")),
    "a timeout with a long message": ("timeout u1 2 3 TimedOut\n" + "x" * 2000, BarrierExit(124, "x" * 1024)),
    "a release of an earlier epoch": ("release u1 2 2 AllPodsStarted\n", None),
    "a release of another attempt": ("release u1 3 3 AllPodsStarted\n", None),
    "a release of another life": ("release u2 2 3 AllPodsStarted\n", None),
    "no word": ("", None),
    "an unknown verdict": ("maybe u1 2 3 AllPodsStarted\n", None),
    "an epoch that is no number": ("release u1 2 x AllPodsStarted\n", None),
    "a negative epoch": ("release u1 2 -3 AllPodsStarted\n", None),
    "too few words": ("release u1 2\n", None),
    "a blank first line": ("\nrelease u1 2 3 AllPodsStarted\n", None),
}


def test_the_script_ends_as_the_rule_says(tmp_path: Path) -> None:
    """Every case, and every case in the annotation's file, all at once since those that wait do so for a second."""
    work = [(case, file) for case in CASES for file in (names.VERDICT_FILE, names.ANNOTATION_FILE)]
    folders = [tmp_path / str(number) for number in range(len(work))]
    with ThreadPoolExecutor(len(work)) as threads:
        endings = list(threads.map(lambda job, folder: _run(CASES[job[0]][0], job[1], folder), work, folders))
    at_its_limit = exit_at_limit(0.0)
    for (case, _), ending in zip(work, endings, strict=True):
        text, expected = CASES[case]
        assert ending == (expected or at_its_limit), case
        assert read_verdict(OWN, ["", text]) == read_verdict(OWN, [text, ""]) == expected, case


def _run(text: str, file: str, folder: Path) -> BarrierExit:
    folder.mkdir()
    with barrier_process("dash", folder) as held:
        held.uid, held.attempt, held.epoch, held.limit = OWN.uid, OWN.attempt, OWN.epoch, "0"
        held.write(file, text)
        code = held.run()
        return BarrierExit(code, held.log.read_text() if held.log.exists() else "")
