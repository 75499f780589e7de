"""Examples as `make e2e` runs them: all of them, and every gang that the quickstart breaks."""

from e2e import example_programs, quickstart
from e2e.example_overlays import FOLDER
from e2e.scenarios.test_quickstart import CAUSES, WHY


def test_every_example_is_run_or_has_no_pods() -> None:
    files = {str(it.relative_to(FOLDER)) for it in FOLDER.rglob("*.yaml")}
    assert files - {"trainer/trainjob.yaml"} == set(example_programs.ALL), "there is no Trainer on the kind cluster"


def test_the_readme_names_every_example() -> None:
    text = (FOLDER / "README.md").read_text()
    assert [it for it in example_programs.ALL if f"({it})" not in text] == []


# --- The quickstart --------------------------------------------------------------------------------------------------


def test_every_gang_that_the_quickstart_breaks_is_explained_in_the_suite() -> None:
    lines = quickstart.typed(quickstart.DOCUMENT.read_text())
    explained = [line.removeprefix(WHY).split()[0] for line in lines if line.startswith(WHY)]
    assert sorted(explained) == sorted(CAUSES)
    typed = [quickstart.here(line, "mine", "localhost/small:1") for line in lines]
    assert not any("busybox:1" in line for line in typed)
    assert any(line.endswith("-n mine") for line in typed)
