"""The container and the volume: known again when met, and equal to what they mean."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection import container
from jobset_gate.objects.jobset import ReplicatedJobView
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.settings import Barrier
from tests.fakes.jobsets import Json, replicated

OURS = container.build_container(ReplicatedJobView(0, replicated()), Config(), Barrier())
VOLUME = container.build_volume("gang")


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "group-scheduling-init",
        {},
        {"name": names.BARRIER_CONTAINER},
        OURS | {"name": "other"},
        OURS | {"env": []},
        OURS | {"env": [None, 3, {"name": names.ENV_UID}]},
        OURS | {"volumeMounts": None},
        OURS | {"volumeMounts": [{"name": names.VOLUME, "mountPath": "/elsewhere"}]},
    ],
)
def test_a_container_that_is_not_ours_is_recognized(entry: Any) -> None:
    assert not container.is_barrier(entry)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"name": names.VOLUME},
        {"name": names.VOLUME, "projected": None},
        {
            "name": names.VOLUME,
            "projected": {"sources": [None, {"configMap": {"name": "x"}}, {"configMap": {"name": 3}}]},
        },
        VOLUME | {"name": "other"},
    ],
)
def test_a_volume_that_is_not_ours_is_recognized(entry: Any) -> None:
    assert not container.is_volume(entry)


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
    message = (names.ENV_UID, names.ENV_ATTEMPT, names.ENV_EPOCH, names.ENV_LIMIT, names.ENV_STREAM, names.ENV_POD)
    for name in (*message, container.ENV_POLL):
        assert name in container.script()
    assert f"JOBSET_GATE_DIR:-{names.MOUNT_PATH}}}" in container.script()
    assert f"for file in {names.VERDICT_FILE} {names.ANNOTATION_FILE};" in container.script()
    assert f"exit {names.EXIT_TIMED_OUT}" in container.script()
