"""The faults, and a thread that injects them while a fit runs."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import StatusTracker
from pyspark.sql import SparkSession

from tests.soak.cases import Case
from tests.soak.cluster import Cluster

# How often each fault comes up, beside the others.
SHARES = {
    "executor": 4, "both executors": 3, "python worker": 3, "python daemon": 2, "task fails": 3,
    "slow task": 2, "cache lost": 4, "disk full": 1, "driver": 1,
}  # fmt: skip
_POLL_SECONDS = 0.01


@dataclass
class Timeline:
    """When the jobs of an undisturbed fit began, in seconds, and what they were for."""

    starts: list[float] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    end: float = 0.0

    def moment(self, rng: random.Random) -> tuple[int, float]:
        """Draw a job, first by its phase, then within the phase, and a moment in its time."""
        phase = rng.choice(sorted(set(self.phases)))
        job = rng.choice([i for i, name in enumerate(self.phases) if name == phase])
        after = self.starts[job + 1] if job + 1 < len(self.starts) else self.end
        return job, rng.random() * max(0.0, after - self.starts[job])


@dataclass
class Fault:
    """One fault: what, and when (seconds after the beginning of a job)."""

    name: str
    job: int
    delay: float
    phase: str
    happened: bool = False


class Injector(threading.Thread):
    """Watches the jobs of a group and injects faults at their moments.

    Parameters
    ----------
    spark : SparkSession
    cluster : Cluster
    case : Case
    group : str
        Job group of the fit.
    faults : sequence of Fault
        ``happened`` is set by this thread.
    """

    def __init__(
        self,
        spark: SparkSession,
        cluster: Cluster,
        case: Case,
        group: str,
        faults: Sequence[Fault],
    ) -> None:
        super().__init__(daemon=True)
        self.timeline = Timeline()
        self.last_progress = time.monotonic()
        self._spark, self._cluster, self._case, self._group = spark, cluster, case, group
        self._waiting = sorted(faults, key=lambda fault: (fault.job, fault.delay))
        self._faults = list(faults)
        self._over = threading.Event()
        self._progress: list[tuple[int, int]] = []
        self._next_look = 0.0

    def run(self) -> None:
        """Poll the jobs of the fit until it is over."""
        tracker = self._spark.sparkContext.statusTracker()
        began = self.last_progress = time.monotonic()
        while not self._over.wait(_POLL_SECONDS):
            now = time.monotonic() - began
            jobs = len(tracker.getJobIdsForGroup(self._group))
            self._watch(tracker)
            self.timeline.starts += [now] * (jobs - len(self.timeline.starts))
            while self._waiting and self._is_due(self._waiting[0], now):
                fault = self._waiting.pop(0)
                fault.happened = bool(_INJECT[fault.name](self._spark, self._cluster, self._case))
        self.timeline.end = time.monotonic() - began
        self._clean()

    def finish(self) -> None:
        """Say that the fit is over; wait for the thread and take back what lasts."""
        self._over.set()
        self.join()

    def describe_jobs(self) -> None:
        """Fill in the phases of the timeline."""
        tracker = self._spark.sparkContext.statusTracker()
        store = self._spark.sparkContext._jsc.sc().statusStore()
        for job in sorted(tracker.getJobIdsForGroup(self._group)):
            text = store.job(job).description()
            self.timeline.phases.append(_phase(text.get() if text.isDefined() else ""))
        del self.timeline.phases[len(self.timeline.starts) :]
        del self.timeline.starts[len(self.timeline.phases) :]

    def _watch(self, tracker: StatusTracker) -> None:
        """Look once a second whether a task has ended."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 1
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        progress = [(stage.stageId, stage.numCompletedTasks) for stage in stages if stage]
        if progress != self._progress:
            self._progress, self.last_progress = progress, time.monotonic()

    def _is_due(self, fault: Fault, now: float) -> bool:
        starts = self.timeline.starts[fault.job :]
        # At the latest when the next job begins: this fit may be the faster one.
        return len(starts) > 1 or bool(starts and now >= starts[0] + fault.delay)

    def _clean(self) -> None:
        for name, fault in (("fail", "task fails"), ("sleep", "slow task")):
            marker = Path(self._case.folder) / name
            if marker.exists():  # no task has read rows since
                marker.unlink()
                for item in self._faults:
                    item.happened &= item.name != fault
        if self._cluster.disk is not None:
            (self._cluster.disk / "ballast").unlink(missing_ok=True)


def _phase(description: str) -> str:
    words = description.lower()
    if "reading" in words:
        return "reading"
    if "round" in words:
        return "round"
    return "last pass" if "cost" in words or "label" in words else "seeding"


def _kill(pids: Sequence[int], most: int = 99) -> bool:
    chosen = random.sample(list(pids), min(most, len(pids)))
    for pid in chosen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(chosen)


def _executor(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    return _kill(cluster.executors(), 1)


def _both_executors(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    return _kill(cluster.executors())


def _python_worker(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    return _kill(cluster.python_processes(workers=True))


def _python_daemon(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    return _kill(cluster.python_processes(workers=False))


def _cache_lost(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    kept = list(spark.sparkContext._jsc.getPersistentRDDs().values())
    for rdd in kept:
        rdd.unpersist()
    return bool(kept)


def _task_fails(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    (Path(case.folder) / "fail").touch()
    _cache_lost(spark, cluster, case)
    return True


def _slow_task(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    (Path(case.folder) / "sleep").touch()
    _cache_lost(spark, cluster, case)
    return True


def _disk_full(spark: SparkSession, cluster: Cluster, case: Case) -> bool:
    assert cluster.disk is not None
    ballast = cluster.disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    return shutil.disk_usage(cluster.disk).free < 1 << 16


_INJECT: dict[str, Callable[[SparkSession, Cluster, Case], bool]] = {
    "executor": _executor,
    "both executors": _both_executors,
    "python worker": _python_worker,
    "python daemon": _python_daemon,
    "task fails": _task_fails,
    "slow task": _slow_task,
    "cache lost": _cache_lost,
    "disk full": _disk_full,
}
