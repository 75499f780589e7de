"""The container and the volume: known again when met, and equal to what they mean."""

import pytest

from jobset_gate import names
from jobset_gate.injection import container
from jobset_gate.objects.quantity import semantically_equal
from tests.fakes.jobsets import Json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1}, {"a": 1, "b": {}}, True),
        ({"a": [{"b": ""}]}, {"a": [{}]}, True),
        ({"a": None}, {}, True),
        ({"a": {"b": {"c": []}}}, {}, True),
        ({"a": 0}, {}, False),
        ({"a": False}, {}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [1]}, {"a": []}, False),
        ({"a": 1}, {"a": "1"}, False),
    ],
)
def test_empty_and_absent_members_are_the_same(one: Json, other: Json, same: bool) -> None:
    assert semantically_equal(one, other) is same
    assert semantically_equal(other, one) is same


def test_the_script_speaks_the_names_that_the_container_gives_it() -> None:
    script = container.shell_script("barrier.sh")
    message = (names.ENV_UID, names.ENV_ATTEMPT, names.ENV_EPOCH, names.ENV_LIMIT, names.ENV_STREAM, names.ENV_POD)
    for name in (*message, container.ENV_POLL):
        assert name in script
    assert f"JOBSET_GATE_DIR:-{names.MOUNT_PATH}}}" in script
    assert f"for file in {names.VERDICT_FILE} {names.ANNOTATION_FILE};" in script
    assert f"exit {names.EXIT_TIMED_OUT}" in script
