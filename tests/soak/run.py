"""The soak: fits on a cluster that is being broken, against the bits of undisturbed ones.

    python -m tests.soak.run --faults 200 --minutes 60 --seed 1

Each fit must give the bits of the undisturbed fit or one clear error of this library. Everything
else is a failure: it is kept in the output folder with what is needed to run it again, and the exit
status is 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from localkmeans_spark import LocalKMeansModel
from tests.soak.cases import KINDS, LAYOUTS, Case, bits
from tests.soak.cluster import REPOSITORY, Cluster, open_session
from tests.soak.faults import SHARES, Fault, Injector, Timeline

SAME, OURS, MISSED = "same bits", "one line of ours", "came too late"
WRONG, FOREIGN, HUNG = "OTHER BITS", "RAW ERROR", "HUNG"
OUTCOMES = (SAME, OURS, MISSED, WRONG, FOREIGN, HUNG)
# Without a task that ended: a busy computer needs a while to start an executor.
_HUNG_SECONDS = 180


@dataclass
class Trial:
    """A disturbed fit and what came of it."""

    number: int
    kind: str
    partitions: int
    faults: list[Fault] = field(default_factory=list)
    outcome: str = ""
    detail: str = ""
    seconds: float = 0.0


class Soak:
    """Runs fits, undisturbed and disturbed, on one cluster."""

    def __init__(
        self, cluster: Cluster, spark: SparkSession, folder: Path, seed: int, only: list[str]
    ) -> None:
        self.trials: list[Trial] = []
        self._cluster, self._spark, self._folder = cluster, spark, folder
        self._rng = random.Random(seed)
        self._known: dict[Case, tuple[str, Timeline]] = {}
        self._bag: list[str] = []
        self._only = only
        self._groups = 0
        self._undisturbed(self._case("dense", 2))  # the first fit of a session is slow
        self._known.clear()

    def one_trial(self, kind: str, partitions: int, most_faults: int) -> Trial:
        """Disturb one fit; its kind may change when a fault needs another."""
        faults = [self._next_fault() for _ in range(self._rng.randint(1, most_faults))]
        if "driver" in faults:
            faults, kind = ["driver"], "checkpointed"
        if any(name in ("task fails", "slow task") for name in faults) and kind in (
            "far",
            "sparse",
        ):
            kind = "dense"
        case = self._case(kind, partitions)
        truth, timeline = self._undisturbed(case)
        trial = Trial(len(self.trials), kind, partitions)
        for name in faults:
            job, delay = timeline.moment(self._rng)
            trial.faults.append(Fault(name, job, delay, timeline.phases[job]))
        began = time.monotonic()
        if faults == ["driver"]:
            found = self._killed_and_resumed(case, trial.faults[0])
        else:
            found, _ = self._fit(case, trial.faults)
        trial.seconds = time.monotonic() - began
        trial.outcome, trial.detail = _judge(found, truth)
        if trial.outcome == SAME and not any(fault.happened for fault in trial.faults):
            trial.outcome = MISSED
        self.trials.append(trial)
        return trial

    def _next_fault(self) -> str:
        if not self._bag:
            self._bag = [
                name
                for name, share in SHARES.items()
                for _ in range(share)
                if name in self._only and (name != "disk full" or self._cluster.disk is not None)
            ]
            self._rng.shuffle(self._bag)
        return self._bag.pop()

    def _case(self, kind: str, partitions: int) -> Case:
        folder = self._folder / f"{kind}-{partitions}"
        folder.mkdir(exist_ok=True)
        return Case(kind, partitions, str(folder))

    def _undisturbed(self, case: Case) -> tuple[str, Timeline]:
        if case not in self._known:
            found, injector = self._fit(case, [])
            if not isinstance(found, LocalKMeansModel):
                raise RuntimeError(f"{case}: the undisturbed fit failed: {found}")
            injector.describe_jobs()
            self._known[case] = bits(found), injector.timeline
        return self._known[case]

    def _fit(self, case: Case, faults: list[Fault], checkpoint: str = "") -> tuple[Any, Injector]:
        """Fit in a thread; return the model or the error, and who watched."""
        if not checkpoint:
            shutil.rmtree(Path(case.folder) / "checkpoint", ignore_errors=True)
        self._groups += 1
        group = f"soak-{self._groups}"
        found: list[Any] = []

        def work() -> None:
            self._spark.sparkContext.setJobGroup(group, group)
            try:
                found.append(case.estimator(checkpoint or None).fit(frame))
            except BaseException as error:
                found.append(error)

        frame = case.frame(self._spark)
        injector = Injector(self._spark, self._cluster, case, group, faults)
        injector.start()
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive() and time.monotonic() < injector.last_progress + _HUNG_SECONDS:
            thread.join(1)
        if thread.is_alive():
            found.append(_HungError(_stacks()))
            self._spark.sparkContext.cancelJobGroup(group)
            thread.join(30)
        injector.finish()
        return found[0], injector

    def _killed_and_resumed(self, case: Case, fault: Fault) -> Any:
        """Start the fit in a driver of its own, kill that, and go on from its checkpoint."""
        checkpoint = Path(case.folder) / "of-another-driver"
        shutil.rmtree(checkpoint, ignore_errors=True)
        words = [self._cluster.url, case.kind, str(case.partitions), case.folder, str(checkpoint)]
        with (Path(case.folder) / "driver.log").open("wb") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.run", "--child", *words],
                cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _HUNG_SECONDS
        while driver.poll() is None and time.monotonic() < deadline:
            if checkpoint.is_dir() and any(path.is_file() for path in checkpoint.rglob("*")):
                time.sleep(self._rng.random() * 0.7)
                break
            time.sleep(0.02)
        fault.happened = driver.poll() is None
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        found, _ = self._fit(case, [], str(checkpoint))
        if isinstance(found, LocalKMeansModel):
            fault.phase = f"round {found.summary.record.resumed_round or 'afresh'}"
        return found


class _HungError(Exception):
    pass


def _stacks() -> str:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode()


def _judge(found: Any, truth: str) -> tuple[str, str]:
    if isinstance(found, LocalKMeansModel):
        got = bits(found)
        return (SAME, "") if got == truth else (WRONG, f"undisturbed: {truth}\ndisturbed: {got}")
    if isinstance(found, _HungError):
        return HUNG, str(found)
    text = str(found)
    if type(found).__module__.startswith("localkmeans_spark") and "\n" not in text:
        return OURS, text
    written = io.StringIO()
    traceback.print_exception(found, file=written)
    return FOREIGN, written.getvalue()


def _child(url: str, kind: str, partitions: str, folder: str, checkpoint: str) -> None:
    """Fit as another driver would, until it is killed."""
    spark = open_session(url)
    case = Case(kind, int(partitions), folder)
    case.estimator(checkpoint).fit(case.frame(spark))


def _table(trials: list[Trial], key: str) -> str:
    counts = Counter(
        (getattr(fault, key).split(" ")[0] if key == "phase" else fault.name, trial.outcome)
        for trial in trials
        for fault in trial.faults
        if fault.happened or trial.outcome == MISSED
    )
    lines = [f"{key:16}" + "".join(f"{name:>18}" for name in OUTCOMES)]
    lines += [
        f"{row:16}" + "".join(f"{counts[row, name]:>18}" for name in OUTCOMES)
        for row in sorted({row for row, _ in counts})
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the soak; return 0 if every fit ended as it must, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.run", description=__doc__)
    parser.add_argument("--faults", type=int, default=200, help="stop after that many")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no fit after that")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=len(KINDS) * len(LAYOUTS))
    parser.add_argument("--most-faults", type=int, default=8, help="in one fit")
    parser.add_argument("--only", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--output", type=Path, default=Path("build/soak"))
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        _child(*options.child)
        return 0
    random.seed(options.seed)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # Every kind, with another layout each time round.
    pairs = [
        (kind, LAYOUTS[(i + j) % len(LAYOUTS)])
        for j in range(len(LAYOUTS))
        for i, kind in enumerate(KINDS)
    ][: options.cases]
    with tempfile.TemporaryDirectory(prefix="localkmeans-soak-") as folder, Cluster() as cluster:
        spark = open_session(cluster.url)
        soak = Soak(cluster, spark, Path(folder), options.seed, options.only)
        n_faults = 0
        while n_faults < options.faults and time.monotonic() - began < 60 * options.minutes:
            kind, partitions = pairs[len(soak.trials) % len(pairs)]
            trial = soak.one_trial(kind, partitions, options.most_faults)
            n_faults += sum(fault.happened for fault in trial.faults)
            _tell(trial, options.output, options.seed)
            if trial.outcome == HUNG:
                break
        spark.stop()
    print(_table(soak.trials, "name"), _table(soak.trials, "phase"), sep="\n\n")
    failures = [trial for trial in soak.trials if trial.outcome in (WRONG, FOREIGN, HUNG)]
    minutes = (time.monotonic() - began) / 60
    print(
        f"\n{n_faults} faults in {len(soak.trials)} fits, {minutes:.1f} minutes, "
        f"seed {options.seed}: {len(failures)} fits failed",
        flush=True,
    )
    return 1 if failures or not n_faults else 0


def _tell(trial: Trial, output: Path, seed: int) -> None:
    """Print a line for a fit; keep those that failed."""
    faults = ", ".join(
        f"{fault.name} in {fault.phase}{'' if fault.happened else ' (missed)'}"
        for fault in trial.faults
    )
    print(
        f"{trial.number:4} {trial.kind:13} {trial.partitions:2} partitions {trial.seconds:5.1f} s "
        f"{trial.outcome:16} {faults}",
        flush=True,
    )
    if trial.outcome in (WRONG, FOREIGN, HUNG):
        text = json.dumps({"seed": seed, **asdict(trial)}, indent=1)
        (output / f"failure-{seed}-{trial.number}.json").write_text(text)
        (output / f"failure-{seed}-{trial.number}.txt").write_text(trial.detail)


if __name__ == "__main__":
    sys.exit(main())
