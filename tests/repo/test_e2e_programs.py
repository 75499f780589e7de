"""`make e2e-programs`: what it changes of an example, and that the page of it is that of a whole run."""

import copy

import pytest

from e2e import example_overlays
from e2e.programs.program import PROGRAMS, Program
from jobset_gate import names
from tests.repo.files import ROOT


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
def test_an_example_runs_as_it_is_but_for_image_resources_and_restarts(program: Program) -> None:
    request = {"requests": {"test": "1"}}
    gated, ungated = (program.documents(request, gated=gate)[-1] for gate in (True, False))
    expected = copy.deepcopy(example_overlays.documents(program.example)[-1])
    del expected["spec"]["failurePolicy"]
    for name, job in example_overlays.jobs(expected):
        (container,) = job["template"]["spec"]["containers"]
        container["image"], container["resources"] = program.image, request if name == "workers" else {}
    assert gated == expected
    del expected["spec"][names.CONFIG_FIELD]
    assert ungated == expected


def test_the_page_is_of_a_run_in_which_every_program_had_its_own_limit() -> None:
    page = (ROOT / "docs/proofs.md").read_text()
    assert "make e2e-programs" in page
    assert "HURRY" not in page
    assert all(f"### {program.title}\n" in page for program in PROGRAMS)
