"""What `make bench-release` computes and writes, from recorded lines and numbers; that needs no cluster."""

import pytest

from bench.release import timestamps
from bench.release.timestamps import IncompleteLogs

LOGS = """\
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:44.000000001Z waiting for the gang to start
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:46.5Z released
[pod/gang-workers-0-0-a/main] 2026-11-21T13:19:47.000000003Z started
[pod/gang-workers-0-1-b/group-scheduling-init] 2026-11-21T14:19:45.000000002+01:00 waiting for the gang to start
[pod/gang-workers-0-1-b/main] 2026-11-21T13:19:46.750000002Z started
failed to say more
"""


def test_moments_are_first_lines_to_the_nanosecond_whatever_the_time_zone() -> None:
    found = timestamps.of_gang(timestamps.lines_of(LOGS), barrier="group-scheduling-init", main="main", pods=2)
    assert found.starts[1] - found.starts[0] == 1_000_000_001
    assert [main - found.starts[1] for main in found.mains] == [1_750_000_000, 2_000_000_001]
    assert (found.after, found.gathering, found.released) == ((1.75, 2.000000001), 1.000000001, 1.499999998)
    for gone in ("gang-workers-0-1-b/main", "gang-workers-0-0-a/group-scheduling-init"):
        text = "\n".join(line for line in LOGS.splitlines() if gone not in line)
        with pytest.raises(IncompleteLogs, match="of 2 have written"):
            timestamps.of_gang(timestamps.lines_of(text), barrier="group-scheduling-init", main="main", pods=2)
