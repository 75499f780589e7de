"""What one event of a pod costs, from the line of a watch to the types of the rules, compared with other decoders."""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import msgspec

from bench.gangs import GangPods, PodStep, job_as_stored, jobs, jobset, new_uid, split
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile
from controllers.barrier.cache import GangCache
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import PodSeen
from jobset_gate.runtime.decoder import ObjectDecoder, WatchEvent
from jobset_gate.runtime.store import Store
from jobset_gate.sources import decode as read

NAME = "decode"
ROUNDS = 200
LINES = 400
SLOW_LINES = 40
"""Of what takes a hundred times as long, fewer are read per round."""

Decoder = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Lines of a watch, all different, as they come while a gang of pods starts and is released."""

    name: str
    lines: Sequence[bytes]

    @property
    def sizes(self) -> str:
        lengths = [len(line) / 1024 for line in self.lines]
        return f"{min(lengths):.1f} to {max(lengths):.1f} KiB, {fmean(lengths):.1f} on average"


def corpus(name: str, count: int, *, lean: bool) -> Corpus:
    """Each pod at a random step, in random order."""
    rng, now = random.Random(1), time.time()  # noqa: S311 - the same lines in every run
    plan = split("llm-pretrain", count, lean=lean)
    stored = jobset(plan)
    stored["metadata"]["uid"] = new_uid(rng)
    made = [GangPods(job_as_stored(job, rng, now), now - rng.randrange(600), lean=lean) for job in jobs(stored)]
    places = [(pods, index) for pods in made for index in range(plan.pods)][:count]
    rng.shuffle(places)
    lines = []
    for version, (pods, index) in enumerate(places, start=1_000_000):
        pod = pods.stored(index, rng.choice(tuple(PodStep)), new_uid(rng))
        pod["metadata"]["resourceVersion"] = str(version)
        event = {"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1", **pod}}
        lines.append(msgspec.json.encode(event))
    return Corpus(name, lines)


def _ignore(*_: object) -> None:
    """For what nothing comes of here."""


def our_decoder() -> Decoder:
    """The shipped path: the informer's reader, then the rules' reader."""
    event: Callable[[bytes], Any] = ObjectDecoder(wire.Pod, _ignore).decode_event

    def decode(line: bytes) -> PodSeen:
        return read.pod(event(line).object)

    return decode


def whole_decoder() -> Decoder:
    """The shipped path to its end: also into the informer's cache and the controller's index."""
    event: Callable[[bytes], Any] = ObjectDecoder(wire.Pod, _ignore).decode_event
    store = Store(read.pod)
    index = GangCache(_ignore, _ignore)

    def handle(line: bytes) -> None:
        nonlocal store
        seen = event(line).object
        if store.has_version(seen.metadata):  # the same lines come again in each round
            store = Store(read.pod)
        change = store.put(seen)
        if change is not None:
            index.on_pod(change)

    return handle


async def run(scale: Scale) -> list[ResultTable]:
    """One table for each size of pods."""
    from kubernetes_asyncio.watch import Watch  # noqa: PLC0415 - it takes a second, which only this benchmark has

    typed: msgspec.json.Decoder[WatchEvent[wire.Pod]] = msgspec.json.Decoder(WatchEvent[wire.Pod])
    async with AsyncExitStack() as stack:
        watch = Watch()
        stack.push_async_callback(watch._api_client.close)  # noqa: SLF001 - nothing else closes what it opens
        ways: dict[str, Decoder] = {
            "msgspec, the same typed fields (baseline)": typed.decode,
            "jobset-gate: line to PodSeen": our_decoder(),
            "the same, with cache and index": whole_decoder(),
            "json.loads, untyped": json.loads,
            "kubernetes-asyncio, Watch.unmarshal_event": lambda line: watch.unmarshal_event(line, "V1Pod"),
        }
        lines = scale.size(LINES, 20)
        corpora = (
            corpus("as small as gated pods get", lines, lean=True),
            corpus("a training job's pods", lines, lean=False),
        )
        gc.collect()
        gc.freeze()  # or each collection would look through the thousands of classes of kubernetes-asyncio
        try:
            return [measured(one, ways, rounds=scale.size(ROUNDS, 3)) for one in corpora]
        finally:
            gc.unfreeze()


def measured(corpus: Corpus, decoders: dict[str, Decoder], *, rounds: int) -> ResultTable:
    """Times each way in each round, in an order that changes; what is compared is compared round by round."""
    times: dict[str, list[float]] = {name: [] for name in decoders}
    slow = {name for name in decoders if name.startswith("kubernetes")}
    for number in range(-1, rounds):
        for name in _turned(list(decoders), number):
            lines = corpus.lines[:SLOW_LINES] if name in slow else corpus.lines
            if name in slow and number >= 0 and number % 10:
                continue
            seconds = _timed(decoders[name], lines)
            if number >= 0:  # the first round warms up
                times[name].append(seconds)
    baseline, ours, *_ = decoders
    ratios = [mine / its for mine, its in zip(times[ours], times[baseline], strict=True)]
    rows: list[list[Cell]] = [
        [name, median(found) * 1e6, percentile(found, 99) * 1e6, median(found) / median(times[baseline]), len(found)]
        for name, found in times.items()
    ]
    return ResultTable(
        name=NAME,
        title=f"Decoding one pod event: {corpus.name} ({corpus.sizes})",
        columns=["way", "median CPU us", "p99 CPU us", "x baseline", "rounds"],
        rows=rows,
        targets=[ResultTarget("ours to baseline, median of the rounds' ratios", median(ratios), 1.5, " x")],
        notes=[f"per event, over {len(corpus.lines)} different lines a round ({SLOW_LINES} for kubernetes-asyncio)"],
        samples={"ratio": ratios},
    )


def _timed(decoder: Decoder, lines: Sequence[bytes]) -> float:
    """CPU seconds per line: what others do on the machine is no business of a decoder."""
    start = time.thread_time()
    for line in lines:
        decoder(line)
    return (time.thread_time() - start) / len(lines)


def _turned(names: list[str], by: int) -> list[str]:
    by %= len(names)
    return names[by:] + names[:by]
