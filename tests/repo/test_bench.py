"""The benchmark of decisions runs for gangs of each source."""

from bench import latency
from bench.scale import Scale
from jobset_gate.sources.table import JOB, JOBSET, START_GROUP


async def test_gangs_of_each_source_are_decided() -> None:
    (table,) = await latency.run(Scale(0.001), real=False)
    assert [row[:2] for row in table.rows] == [["embedded", it] for it in (JOBSET.name, JOB.name, START_GROUP.name)]
    assert all(0 < seconds < 60 for name, its in table.samples.items() if "decisions" in name for seconds in its)
    assert {len(its) for name, its in table.samples.items() if "decisions" in name} == {2}
