"""Cutting a stream into lines."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.kube.lines import TOO_LONG, LineSplitter


def cut(chunks: list[bytes], longest: int = 20) -> list[bytes]:
    cutter = LineSplitter(longest)
    lines = [line for chunk in chunks for line in cutter.feed(chunk)]
    rest = cutter.end()
    return lines if rest is None else [*lines, rest]


def test_a_line_longer_than_the_limit_is_dropped_and_the_next_is_whole_again() -> None:
    assert cut([b"short\n", b"x" * 15, b"x" * 15, b"x\nnext\n"]) == [b"short", TOO_LONG, b"next"]


def test_what_is_dropped_is_not_kept_in_memory() -> None:
    cutter = LineSplitter(20)
    for _ in range(100):
        assert list(cutter.feed(b"x" * 1000)) == []
    assert sum(map(len, cutter._partial)) == 0


@given(st.lists(st.binary(max_size=25), max_size=30), st.data())
def test_the_lines_do_not_depend_on_where_the_stream_was_cut(lines: list[bytes], data: st.DataObject) -> None:
    """The same bytes in any chunks give the same lines."""
    stream = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert cut(chunks) == cut([stream])
    kept = [TOO_LONG if len(line) > 20 else line for line in stream.split(b"\n") if line.strip() or len(line) > 20]
    assert cut([stream]) == kept
