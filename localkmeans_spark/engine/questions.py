"""What the driver asks all machines outside rounds, as plain data: many questions make one job.

Seeding is written as generators that yield questions and are sent answers, so that the seedings of
several restarts, or of several fits, advance side by side in the same Spark jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from localkmeans_spark.engine import machine_draws, machine_rounds
from localkmeans_spark.engine.aggregate import (
    Assignment,
    CandidateRows,
    concatenate,
    in_time_order,
    merge_arrivals,
    merge_assignments,
    merge_candidates,
)
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.machine import Machine, Merge, Worker
from localkmeans_spark.kernel.sample import Sample

Result = TypeVar("Result")
Item = TypeVar("Item")

# Memory that the summaries of one job may take on a machine; more questions make more jobs.
JOB_BYTES = 256 << 20


class Job(NamedTuple):
    """How machines answer a question.

    Attributes
    ----------
    worker : callable (machine, order) -> summary
    order : object
    merge : callable (summary, summary) -> summary
    finish : callable (summary) -> answer
    nbytes : int
        About how large a machine's summary is.
    description : str
    """

    worker: Worker
    order: Any
    merge: Merge
    finish: Callable[[Any], Any]
    nbytes: int
    description: str


class AskArrivals(NamedTuple):
    """Let the rows' Poisson clocks run (pass ``number``); about ``wanted`` arrive in all."""

    centers: np.ndarray
    duration: float
    seed: int
    number: int
    wanted: int

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is :class:`Arrivals`."""
        order = machine_draws.ArrivalsOrder(
            data.frame, self.centers, self.duration, self.seed, self.number
        )
        nbytes = 8 * self.wanted * data.n_features // max(1, len(data.statistics))
        name = f"seeding pass {self.number} ({len(self.centers)} centers so far)"
        return Job(machine_draws.arrivals, order, merge_arrivals, in_time_order, nbytes, name)


class AskOneRowEach(NamedTuple):
    """Let every machine draw one row by distance."""

    centers: np.ndarray
    seed: int
    number: int

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is a list of ``OneRow`` by machine."""
        order = machine_draws.ArrivalsOrder(data.frame, self.centers, 0.0, self.seed, self.number)
        name = f"drawing center {len(self.centers) + 1}"
        return Job(machine_draws.one_row, order, concatenate, _by_machine, 0, name)


class AskRandomRows(NamedTuple):
    """Draw ``size`` rows without replacement; fewer if there are fewer."""

    size: int
    seed: int
    number: int

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is an array of rows in the order drawn."""
        order = machine_draws.RowsOrder(data.frame, self.size, self.seed, self.number)
        nbytes = 8 * self.size * data.n_features
        name = "drawing random rows"
        return Job(machine_draws.random_rows, order, merge_candidates, _rows_of, nbytes, name)


class AskSample(NamedTuple):
    """Draw about ``size`` rows, from each machine by its weight, that stand for all rows."""

    size: int
    seed: int
    number: int

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is a :class:`~kernel.greedy.Sample`."""
        share = self.size / data.sum_weights
        sizes = {item.machine: max(1, round(share * item.sum_weights)) for item in data.statistics}
        order = machine_draws.SampleOrder(data.frame, sizes, self.seed, self.number)
        nbytes = 8 * self.size * data.n_features // max(1, len(data.statistics))
        finish = partial(_as_sample, dtype=data.dtype)
        return Job(machine_draws.sample, order, concatenate, finish, nbytes, "drawing a sample")


class AskWeights(NamedTuple):
    """Weigh the rows nearest each candidate."""

    candidates: np.ndarray

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is an array of weights."""
        order = machine_draws.WeighOrder(data.frame, self.candidates)
        nbytes = 8 * len(self.candidates)
        return Job(machine_draws.weigh, order, np.add, _as_one_part, nbytes, "weighing candidates")


class AskAssignment(NamedTuple):
    """Label every row exactly with the nearest of the absolute ``centers``."""

    centers: np.ndarray

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is an :class:`Assignment`."""
        order = machine_rounds.CentersOrder(self.centers)
        nbytes = 24 * len(self.centers)
        name = "final cost and sizes"
        return Job(machine_rounds.assign, order, merge_assignments, _in_machine_order, nbytes, name)


class AskTogether(NamedTuple):
    """Several questions in one pass."""

    questions: tuple[Question, ...]

    def job(self, data: DataSummary) -> Job:
        """Say how machines answer; the answer is the list of answers."""
        jobs = [question.job(data) for question in self.questions]

        def finish(found: list[Any]) -> list[Any]:
            return [job.finish(item) for job, item in zip(jobs, found, strict=True)]

        return Job(
            answer_all,
            [(job.worker, job.order) for job in jobs],
            partial(merge_all, merges=[job.merge for job in jobs]),
            finish,
            sum(job.nbytes for job in jobs),
            jobs[0].description,
        )


Question = (
    AskArrivals
    | AskOneRowEach
    | AskRandomRows
    | AskSample
    | AskWeights
    | AskAssignment
    | AskTogether
)
Dialogue = Generator[Question, Any, Result]


def answer_all(on_machine: Machine, jobs: Sequence[tuple[Worker, Any]]) -> list[Any]:
    """Answer several questions on one machine, in their order. Runs on: executor."""
    return [worker(on_machine, order) for worker, order in jobs]


def merge_all(left: list[Any], right: list[Any], merges: Sequence[Merge]) -> list[Any]:
    """Merge the answers of two groups of machines, question by question."""
    return [merge(a, b) for merge, a, b in zip(merges, left, right, strict=True)]


def batches(
    items: Sequence[Item], nbytes: Callable[[Item], int], limit: int = JOB_BYTES
) -> list[list[Item]]:
    """Cut items, in their order, into groups of at most ``limit`` bytes or of one item."""
    groups: list[list[Item]] = []
    total = 0
    for item in items:
        size = nbytes(item)
        if not groups or total + size > limit:
            groups.append([])
            total = 0
        groups[-1].append(item)
        total += size
    return groups


def hold_dialogues(
    dialogues: Sequence[Dialogue[Result]], answer: Callable[[list[Question]], list[Any]]
) -> list[Result]:
    """Let dialogues advance side by side, one question of each at a time.

    Parameters
    ----------
    dialogues : sequence of generators
        Each yields questions, is sent their answers, and returns its result.
    answer : callable (list of questions) -> list of answers

    Returns
    -------
    list
        The results, in the order of the dialogues.
    """
    results: dict[int, Result] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(dialogues)))
    while answers:
        questions: dict[int, Question] = {}
        for place, value in answers.items():
            question = _next_question(dialogues[place], value)
            if isinstance(question, _Done):
                results[place] = question.result
            else:
                questions[place] = question
        found = answer(list(questions.values())) if questions else []
        answers = dict(zip(questions, found, strict=True))
    return [results[place] for place in range(len(dialogues))]


class _Done(NamedTuple):
    result: Any


def _next_question(dialogue: Dialogue[Any], answer: Any) -> Question | _Done:
    try:
        return dialogue.send(answer)
    except StopIteration as end:
        return _Done(end.value)


def _as_is(found: Any) -> Any:
    return found


def _as_one_part(found: np.ndarray) -> np.ndarray:
    return found.sum(axis=0)


def _by_machine(found: list[machine_draws.OneRow]) -> list[machine_draws.OneRow]:
    return sorted(found, key=lambda item: item.machine)


def _as_sample(found: list[machine_draws.SampledRows], dtype: str) -> Sample:
    found = sorted(found, key=lambda item: item.machine)
    return Sample(
        np.concatenate([item.rows for item in found]),
        np.concatenate([item.weights for item in found]),
        dtype,
    )


def _rows_of(found: CandidateRows) -> np.ndarray:
    return found.rows


def _in_machine_order(found: Assignment) -> Assignment:
    order = np.argsort(found.machines)
    return Assignment(
        found.machines[order], found.sizes, found.weights[order], found.inertia[order]
    )
