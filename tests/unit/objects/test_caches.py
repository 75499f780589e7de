"""What many objects share is kept once, and a tenant who makes up new ones all the time fills no memory."""

import tracemalloc

from jobset_gate.objects.caches import intern_text


def test_equal_texts_become_one_object_unless_they_are_long() -> None:
    one, other = str(10**20), str(10**20)
    assert one is not other
    assert intern_text(one) is intern_text(other)
    long = "x" * 1_000_000
    assert intern_text(long) is long
    assert intern_text("".join(["x" * 500_000, "x" * 500_000])) is not long


def test_texts_that_are_new_each_time_do_not_pile_up() -> None:
    """In Python 3.12 what is interned is never given back."""
    tracemalloc.start()
    try:
        for number in range(200_000):
            intern_text(f"{number:0100}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 8 * 1024 * 1024
