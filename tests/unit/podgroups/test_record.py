"""What was decided of groups, as it is stored, and which of several records holds (G3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.errors import Malformed
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.model import GangMode
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, GangShare
from tests.fakes.podgroups.objects import key, record
from tests.fakes.present import present

ONE, TWO = key("one"), key("two")
SHARES = (
    GangShare(minimum=2, mode=GangMode.STRICT, many=3, newest=5.0),
    GangShare(minimum=7, mode=GangMode.NON_STRICT, many=8, newest=6.0),
)


@given(
    st.builds(
        AdmissionRecord,
        generation=st.integers(1, 9),
        stage=st.sampled_from(AdmissionState),
        how=st.sampled_from(AdmissionMode),
        at=st.floats(0, 1e10),
        gangs=st.just(((ONE, 1), (TWO, 4))),
        minimum=st.integers(0, 10**6),
        wait=st.fractions(0, 10**6),
        mode=st.sampled_from(GangMode),
        shares=st.just(SHARES),
        satisfied=st.none() | st.floats(0, 1e10),
        why=st.text(max_size=20),
    )
)
def test_what_is_stored_is_read_again(said: AdmissionRecord) -> None:
    assert records.decode_record(records.encode_record(said)) == said


MINE = records.encode_record(record((ONE, 1)))


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"generation":1}', "\x00"),
        *(MINE.replace('"60"', f'"{wait}"') for wait in ("1/0", "1e999999999", "-1", "60.0")),
        MINE.replace('"generation":1', '"generation":-1'),
        MINE.replace('"generation":1', f'"generation":{2**63}'),
        MINE.replace('"not_before":0.0', '"not_before":1e300'),
        MINE[:-1] + ',"more":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_what_we_cannot_have_written_is_rejected(text: str) -> None:
    with pytest.raises(Malformed):
        records.decode_record(text)


def test_each_gang_reads_its_own_part_of_a_decision() -> None:
    both = record((ONE, 1), (TWO, 4), minimum=2, shares=SHARES)
    read = present(records.record_for(both, TWO))
    assert (read.generation, read.minimum, read.mode, read.many, read.newest) == (4, 7, GangMode.NON_STRICT, 8, 6.0)
    assert read.gangs == both.gangs
    assert records.latest_record(TWO, [both], []) == read, "a copy counts where the first gang's own is gone"
    assert records.record_for(both, key("three")) is None


def test_the_higher_generation_holds_wherever_it_stands() -> None:
    together, alone = record((ONE, 1), (TWO, 4)), record((TWO, 5))
    assert records.latest_record(TWO, [alone], [together]) == alone
    assert records.latest_record(key("three"), [alone], [together]) is None, "it names the gang nowhere"
    later = record((ONE, 2), (TWO, 6))
    found = present(records.latest_record(TWO, [alone], [later]))
    assert found.generation == 6


def test_of_a_decision_a_namespace_has_its_own_part() -> None:
    far = key("far", namespace="other")
    wide = record((ONE, 1), (far, 2), (TWO, 4), shares=(SHARES[0], SHARES[1], SHARES[1]))
    near = records.narrow_record(wide, lambda it: it.namespace == "team")
    assert near.gangs == ((ONE, 1), (TWO, 4))
    assert near.shares == SHARES
