"""The evaluator of match conditions and CRD rules: values, and CEL's own idea of errors."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.fake.apiserver.cel import CelError, evaluate

OBJECT = {
    "metadata": {"name": "x", "annotations": {"jobset-gate.dev/bypass": "true"}},
    "spec": {"jobs": [{"name": "a", "replicas": 2}, {"name": "b"}], "suspend": False, "count": 3},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 == 7", True),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("'a' + \"b\" == 'ab'", True),
        ("[1, 2] + [3] == [1, 2, 3]", True),
        ("{'a': 1}.a == 1", True),
        ("true == 1", False),
        ("1 == 1.0", True),
        ("null == null", True),
        ("object.spec.suspend ? 'yes' : 'no'", "no"),
        ("object.spec.count > 2 && !object.spec.suspend", True),
        ("object.metadata.name in ['x', 'y']", True),
        ("'name' in object.metadata", True),
        ("object.metadata.annotations['jobset-gate.dev/bypass'] == 'true'", True),
        ("object.spec.jobs[1].name", "b"),
        ("size(object.spec.jobs) == 2 && object.metadata.name.size() == 1", True),
        ("has(object.spec.jobs) && !has(object.spec.gate)", True),
        ("object.spec.jobs.exists(j, j.name == 'b')", True),
        ("object.spec.jobs.all(j, has(j.replicas))", False),
        ("object.spec.jobs.exists_one(j, has(j.replicas))", True),
        ("object.spec.jobs.filter(j, has(j.replicas)).map(j, j.name)", ["a"]),
        ("object.metadata.annotations.exists(k, k.startsWith('jobset-gate.dev/'))", True),
        ("'jobset'.endsWith('set') && 'jobset'.contains('bs') && 'job1'.matches('^[a-z]+[0-9]$')", True),
        ("int('3') == 3 && string(3) == '3' && double('1.5') == 1.5", True),
        ("string(true)", "true"),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate(text, {"object": OBJECT}) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("object.spec.missing", "no such key: missing"),
        ("object.spec.missing == 'x'", "no such key: missing"),
        ("object.spec.jobs[7]", "index out of bounds: 7"),
        ("object.metadata.annotations['other']", "no such key: other"),
        ("has(object.status.conditions)", "no such key: status"),
        ("object.spec.count && true", "no such overload"),
        ("object.metadata.name > 1", "no such overload"),
        ("1 / 0", "division by zero"),
        ("unknown", "undeclared reference to 'unknown'"),
        ("shout('a')", "undeclared reference to 'shout'"),
        ("a ==", "unexpected 'end of expression'"),
        ("a b", "unexpected 'b'"),
        ("a # b", "token recognition error"),
        ("old.spec", "no such key: spec"),
    ],
)
def test_errors(text: str, complaint: str) -> None:
    with pytest.raises(CelError, match=complaint.replace("(", r"\(")):
        evaluate(text, {"object": OBJECT, "a": 1, "b": 2, "old": None})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.missing == 1 || true", True),
        ("true || object.missing == 1", True),
        ("object.missing == 1 && false", False),
        ("false && object.missing == 1", False),
        ("object.spec.jobs.exists(j, j.replicas == 2)", True),
        ("object.spec.jobs.all(j, j.replicas == 3)", False),
    ],
)
def test_an_error_on_one_side_is_forgiven_when_the_other_decides(text: str, value: bool) -> None:
    assert evaluate(text, {"object": OBJECT}) is value


@pytest.mark.parametrize("text", ["object.missing == 1 || false", "true && object.missing == 1"])
def test_an_error_counts_when_the_other_side_does_not_decide(text: str) -> None:
    with pytest.raises(CelError, match="no such key: missing"):
        evaluate(text, {"object": OBJECT})
