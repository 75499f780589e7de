"""A2: the config as the controllers read it from a stored JobSet, and the texts it is written as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.barrier.config import canonical, parse_annotation, stored_config
from jobset_gate.barrier.model import Config
from jobset_gate.errors import Malformed
from jobset_gate.objects.field_error import format_value


@pytest.mark.parametrize(
    ("field", "annotation", "config"),
    [
        (b'{"timeoutAfterSeconds":300}', None, Config(timeout=300)),
        (b"{}", None, Config()),
        (None, '{"targetReplicatedJobs":["a"]}', Config(targets=("a",))),
        (b"null", '{"timeoutAfterSeconds":5}', Config(timeout=5)),
        (b'{"timeoutAfterSeconds":5}', '{"timeoutAfterSeconds": 5}', Config(timeout=5)),
        (None, None, Config()),
    ],
)
def test_a_stored_config_is_the_fields_or_the_annotations(
    field: bytes | None, annotation: str | None, config: Config
) -> None:
    assert stored_config(field, annotation) == config


@pytest.mark.parametrize(
    ("field", "annotation", "where"),
    [
        (b'{"timeoutAfterSeconds":0}', None, "spec.groupSchedulingConfig.timeoutAfterSeconds: 0: must be an integer"),
        (None, "garbage", "metadata.annotations[jobset-gate.dev/group-scheduling-config]: 'garbage': must be a JSON"),
        (
            None,
            '{"targetReplicatedJobs":["\\ud800"]}',
            r"metadata.annotations[jobset-gate.dev/group-scheduling-config].targetReplicatedJobs[0]: '\ud800'",
        ),
        (b"{", None, "spec.groupSchedulingConfig: b'{': must be JSON"),
        (b"{}", '{"timeoutAfterSeconds":5}', "metadata.annotations[jobset-gate.dev/group-scheduling-config]"),
    ],
)
def test_a_stored_config_that_nobody_can_read_is_malformed_and_says_where(
    field: bytes | None, annotation: str | None, where: str
) -> None:
    with pytest.raises(Malformed) as problem:
        stored_config(field, annotation)
    assert str(problem.value).startswith(where)
    assert "must be must" not in str(problem.value)


configs = st.builds(
    Config,
    timeout=st.none() | st.integers(1, 2**31 - 1),
    targets=st.lists(st.text(min_size=1, max_size=9).filter(lambda it: it.isprintable()), unique=True).map(tuple),
)


@given(configs)
def test_the_canonical_text_reads_back_as_the_config(config: Config) -> None:
    read = parse_annotation(canonical(config)).config
    assert read == config


@pytest.mark.parametrize("value", ["x" * 10_000, "\ud800", object(), float("nan"), [[[]]], 10**400])
def test_any_value_can_be_shown_on_one_short_line(value: object) -> None:
    text = format_value(value)
    assert len(text) <= 120
    assert "\n" not in text
