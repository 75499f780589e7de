"""The quickstart as the suite types it: every line but those for make, and for each broken gang its cause."""

from pathlib import Path

from e2e import quickstart
from e2e.scenarios.test_quickstart import CAUSES, WHY

LINES = quickstart.typed(quickstart.DOCUMENT.read_text())


def test_every_gang_that_the_document_breaks_is_asked_about() -> None:
    asked = [line.removeprefix(WHY).split()[0] for line in LINES if line.startswith(WHY)]
    assert sorted(asked) == sorted(CAUSES)


def test_only_lines_for_make_are_left_out() -> None:
    text = "\n```sh\nmake try\nkubectl get pods \\\n  -o wide\n# said\n\n```\n\n```\nprinted\n```\n"
    assert quickstart.typed(text) == ["kubectl get pods    -o wide"]
    assert len(LINES) >= 12


def test_the_examples_are_there_with_an_image_of_the_nodes(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "own"
    kubeconfig.write_text("a: b")
    place = tmp_path / "place"
    place.mkdir()
    quickstart.furnish(place, "localhost/small:1", str(kubeconfig))
    text = (place / "examples" / "first-gang.yaml").read_text()
    assert "localhost/small:1" in text
    assert "busybox" not in text
    assert (place / ".venv").is_symlink()
    assert (place / quickstart.KUBECONFIG).read_text() == "a: b"


def test_what_is_typed_is_about_that_image_and_another_namespace() -> None:
    typed = [quickstart.here(line, "mine", "localhost/small:1") for line in LINES]
    assert not any("busybox:1" in line or " small" in line for line in typed)
    (edit,) = [line for line in typed if "no-such-tag" in line]
    assert r"s/localhost\/small:1/busybox:no-such-tag/" in edit
    assert any(line.endswith("-n mine") for line in typed)
