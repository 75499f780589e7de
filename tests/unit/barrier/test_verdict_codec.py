"""Verdicts and clocks as texts: what is written is read back, and nothing else is taken for one."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind, WaitingSince
from jobset_gate.objects import terminal_text
from tests.fakes.present import present

UIDS = st.from_regex(r"[0-9a-f-]{1,36}", fullmatch=True)
COUNTS = st.integers(0, 10**9 - 1)
GENERATIONS = st.builds(Generation, UIDS, COUNTS, COUNTS)
CAUSES = st.sampled_from(
    (names.REASON_STARTED, names.REASON_TIMED_OUT, names.REASON_INDEX_FAILED, names.REASON_BYPASSED)
)
MESSAGES = st.text(max_size=300).map(terminal_text.lines)


@given(st.sampled_from(VerdictKind), GENERATIONS, CAUSES, MESSAGES)
def test_a_verdict_is_read_back_as_it_was_written(
    kind: VerdictKind, generation: Generation, cause: str, message: str
) -> None:
    verdict = Verdict(kind=kind, generation=generation, cause=cause, message=message.rstrip("\n"))
    assert verdict_codec.parse(verdict_codec.render(verdict)) == verdict


@given(GENERATIONS, st.floats(0, 4 * 10**9))
def test_a_clock_is_read_back_to_the_millisecond_and_stored_the_same_way_again(
    generation: Generation, at: float
) -> None:
    """Else each pass would see a change and write."""
    text = verdict_codec.render_clock(WaitingSince(generation=generation, at=at))
    back = present(verdict_codec.parse_clock(text))
    assert back.generation == generation
    assert back.at == pytest.approx(at, abs=0.0011)
    assert verdict_codec.render_clock(back) == text


@given(st.datetimes(timezones=st.timezones() | st.just(timezone(timedelta(hours=14))) | st.just(UTC)))
@example(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))
@example(datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))))
def test_whatever_moment_stands_there_can_be_stored_again_or_is_none(moment: datetime) -> None:
    """Else a single edit of the ConfigMap would keep its gang waiting for ever."""
    found = verdict_codec.parse_clock(f"u 0 0 {moment.isoformat()}")
    assert found is None or verdict_codec.parse_clock(verdict_codec.render_clock(found)) is not None


@given(st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    verdict_codec.parse(text)
    verdict_codec.parse_clock(text)
    verdict_codec.parse(f"release {text} 0 0 AllPodsStarted")
    verdict_codec.parse_clock(f"u 0 0 {text}")


def test_a_verdict_that_a_tenant_wrote_brings_no_control_characters_with_it() -> None:
    found = present(verdict_codec.parse("timeout u-1 0 0 TimedOut\nfirst\x1b]52;c;eA==\x07\nsecond \u202egpj\n"))
    assert found.message == "first^[]52;c;eA==^G\nsecond \\u202egpj"
    assert verdict_codec.parse("timeout u-1 0 0 Timed\x1b[2JOut") is None


NO_VERDICTS = (
    "",
    "release u-1 0 0",
    "release u-1 0 0 AllPodsStarted more",
    "release  0 0 AllPodsStarted",
    "release u-1 0 0 Because",
    "release u-1 0 0 AllPodsStarted\n" + "x" * verdict_codec.MAX_VERDICT_LENGTH,
    "open u-1 0 0 AllPodsStarted",
    "release u-1 -1 0 AllPodsStarted",
    "release u-1 0 x AllPodsStarted",
    "release u-1 0 \u0661 AllPodsStarted",
    "release u-1 0 1234567890 AllPodsStarted",
)
NO_CLOCKS = (
    "",
    "u-1 0 0 yesterday",
    "u-1 0 0 2026-08-01T10:00:00",
    "u-1 0 0 2026-13-01T10:00:00Z",
    " 0 0 2026-08-01T10:00:00Z",
    "u-1 x 0 2026-08-01T10:00:00Z",
    "u-1 0 0 2026-08-01 10:00:00Z",
)


def test_what_we_would_not_have_written_is_no_verdict_and_no_clock() -> None:
    assert [text for text in NO_VERDICTS if verdict_codec.parse(text) is not None] == []
    assert [text for text in NO_CLOCKS if verdict_codec.parse_clock(text) is not None] == []


@pytest.mark.parametrize(
    ("text", "epoch"),
    [(None, 0), ("", 0), ("0", 0), ("7", 7), ("1023", 1023), ("1024", 1024), ("007", 7), ("-1", 0), ("x", 0), ("٣", 0)],
)
def test_an_epoch_that_is_absent_or_garbage_is_the_first(text: str | None, epoch: int) -> None:
    assert verdict_codec.parse_epoch(text) == epoch


@pytest.mark.parametrize("character", ["a", "ä", "€", "😀"])
@pytest.mark.parametrize("shift", range(4))
def test_a_message_takes_at_most_one_kibibyte_and_ends_at_a_character(character: str, shift: int) -> None:
    message = "x" * shift + character * 2000
    verdict = Verdict(kind=VerdictKind.TIMEOUT, generation=Generation("u-1", 0, 0), cause="TimedOut", message=message)
    head, _, said = verdict_codec.render(verdict).partition("\n")
    assert head == "timeout u-1 0 0 TimedOut"
    kept = said.removesuffix("\n")
    assert verdict_codec.MESSAGE_LIMIT - 8 < len(kept.encode()) <= verdict_codec.MESSAGE_LIMIT == 1024
    assert kept.endswith(character + "...")
    assert "�" not in kept


def test_a_gate_holds_only_what_there_is() -> None:
    clock = WaitingSince(generation=Generation("u-1", 0, 0), at=0.0)
    assert verdict_codec.config_map_data(None, None) == {}
    assert verdict_codec.config_map_data(None, clock) == {"waiting-since": "u-1 0 0 1970-01-01T00:00:00.000Z"}
