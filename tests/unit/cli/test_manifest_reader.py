"""Sources that cannot be read end with one clear line; those that can are read as kubectl reads them."""

from pathlib import Path

import pytest

from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.manifests.reader import ManifestDocument, read
from jobset_gate.cli.manifests.yaml_text import Scalar


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `m.yaml` is written; also the current folder, so that messages are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "m.yaml"


def docs(file: Path, text: str | bytes) -> list[ManifestDocument]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read([file.name])


def test_several_documents_and_their_lines(write: Path) -> None:
    found = docs(write, "# a comment\na: 1\n---\n---\n# nothing\n---\nb: 2\n")
    assert [(it.number, it.line, it.value) for it in found] == [(1, 2, {"a": 1}), (4, 7, {"b": 2})]


def test_concatenated_json(write: Path) -> None:
    found = docs(write, '{"a": 1}\n\n{"b":\n 2} {"c": 3}')
    assert [(it.number, it.line, it.value) for it in found] == [(1, 1, {"a": 1}), (2, 3, {"b": 2}), (3, 4, {"c": 3})]


MERGED = {"x": [{"p": 1, "q": 1}, {"q": 2, "r": 2}], "c": {"p": 1, "q": 1, "r": 3}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeffa: 1", {"a": 1}),
        ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
        ('{"a":\t"\\/"}', {"a": "/"}),
        ('{"a": "\\ud83d\\ude80"}', {"a": "🚀"}),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2", {"a": {"b": 1}, "c": {"b": 2}}),
        ("1: a\ntrue: b\non: c", None),
        ("1: a\ntrue: b\n0.5: c", {"1": "a", "true": "b", "0.5": "c"}),
        ("a: !!int abc", None),
        ("a: <<", None),
        ('a: "\\ud800"', None),
        ("a: !!float 3", {"a": 3}),
        ("a: &a {p: 1}\nx: {k: &b {<<: *a, p: 2}}\nc: {<<: *b}", {"a": {"p": 1}, "x": {"k": {"p": 2}}, "c": {"p": 2}}),
        ("x: [&a {p: 1, q: 1}, &b {q: 2, r: 2}]\nc: {<<: [*a, *b], r: 3}", MERGED),
        ("&a {<<: *a, x: 1}", {"x": 1}),
        ("a: !!str 5\nc: 'on'", {"a": "5", "c": "on"}),
        ("a: 12:30\nb: 2001-01-01", {"a": "12:30", "b": "2001-01-01"}),
    ],
)
def test_values(write: Path, text: str, value: object) -> None:
    """None: refused."""
    if value is None:
        with pytest.raises(CommandError):
            docs(write, text)
        return
    assert [it.value for it in docs(write, text)] == [value]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "m.yaml:2:2: invalid YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n\tb: 2\n", "m.yaml:2:1: invalid YAML: found character '\\t' that cannot"),
        ("a: 1\nb: 2\na: 3\n", "m.yaml:3:1: invalid YAML: the key 'a' is given twice: kubectl silently takes the last"),
        ("a: *nobody\n", "m.yaml:1:4: invalid YAML: found undefined alias 'nobody'"),
        ("a: !!python/name:os.system\n", "m.yaml:1:4: invalid YAML: the tag"),
        ("a: .nan\n", "m.yaml:1:4: invalid YAML: .nan is no number that Kubernetes knows"),
        ("a: {{ b }}\n", "m.yaml:1:5: invalid YAML: a key must be a string (at a); a Helm template must be rendered"),
        ("{{- if .Values.gang }}\n", "m.yaml:1:2: not JSON: Expecting property name enclosed in double quotes; a Helm"),
        ('{"a": 1}\n{"b" 2}', "m.yaml:2:6: not JSON: Expecting ':' delimiter"),
        ('{"a": 1}\n{"b": {"c": 1, "c": 2}}', "m.yaml:2: in the JSON object that begins here the key 'c' is"),
        ('{"a": 1e999}', "m.yaml:1: the JSON object that begins here holds a number or character JSON has not"),
        ('{"a": "\\ud800"}', "m.yaml:1: the JSON object that begins here holds a number or character JSON has not"),
        (b"a: 1\nb: \xff\n", "m.yaml:2: not UTF-8"),
        ("a: \x00", "m.yaml: invalid YAML: "),
        ("a: " + "[" * 100_000, "m.yaml: nested too deeply"),
        ('{"a":' * 100_000, "m.yaml: nested too deeply"),
        ("a: &a [*a]\n", "m.yaml: nested too deeply"),
        ("", "no objects in m.yaml"),
    ],
)  # fmt: skip
def test_trouble_is_reported_with_file_and_line(write: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(CommandError) as failed:
        docs(write, text)
    assert str(failed.value).startswith(message)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("spec", (2, 1)),
        ("spec.list[1]", (5, 5)),
        ("spec.list[1].b", (6, 5)),
        ("spec.list[1].missing.more", (5, 5)),
        ("spec.list[7]", (3, 3)),
        ("metadata.annotations[a.b/c]", (9, 5)),
        ("nothing", (1, 1)),
    ],
)
def test_the_line_and_column_of_a_field(write: Path, path: str, place: tuple[int, int]) -> None:
    text = "kind: X\nspec:\n  list:\n  - a: 1\n  - a: 1\n    b: 2\nmetadata:\n  annotations:\n    a.b/c: x\n"
    assert docs(write, text)[0].place(path) == place


MEANINGS: dict[Scalar, tuple[str, ...]] = {
    None: ("", "~", "null"),
    True: ("y", "Yes", "on", "TRUE"),
    False: ("n", "No", "OFF"),
    300: ("300", "3e2", "300.0"), -7: ("-7",), 7: ("+7",), 1000: ("1_000", "1e3"), 511: ("0777",),
    15: ("0o17",), 31: ("0x1F",), 5: ("0b101",), -5: ("-0b101",), 89: ("089",), 0.5: ("0.5", ".5"),
    2**64 - 1: ("18446744073709551615",), 2**64: ("18446744073709551616",),
}  # fmt: skip
STRINGS = (
    "tRUE", ".", "1.2.3", "12:30", "190:20:30", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "1e", "0x", "100m",
    "٣", "=", "busybox:1.37", "0x" + "f" * 32,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), *((it, value) for value, texts in MEANINGS.items() for it in texts), *((it, it) for it in STRINGS)],
)
def test_meaning(write: Path, text: str, value: Scalar) -> None:
    """Type and value: True is not 1 here."""
    found = docs(write, f"a: {text}")[0].value["a"]
    assert (type(found), found) == (type(value), value)
