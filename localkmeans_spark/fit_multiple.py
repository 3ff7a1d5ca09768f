"""Models for several parameter maps: those that read the same blocks are fitted side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from localkmeans_spark.errors import Fact, invalid

M = TypeVar("M")


def check_maps(maps: object, owner: str) -> None:
    """Raise unless these are parameter maps: a single one would look like none."""
    if not isinstance(maps, list | tuple):
        raise invalid(
            owner, "paramMaps", "a list of parameter maps",
            Fact(f"a value of type {type(maps).__name__}"),
            "Make it with ParamGridBuilder, or call fit for a single map.",
        )  # fmt: skip


class SharedFits(Generic[M]):
    """Iterator of ``(index, model)``, in the order of the parameter maps, safe for threads.

    The first model asked for of a group has the whole group fitted, in one go, so nothing stays
    cached between two calls and nothing is left behind when the iterator is abandoned. Threads
    that ask for another model of the group wait for it; groups may run at the same time.

    Parameters
    ----------
    groups : sequence of hashable
        For every parameter map, the group it belongs to.
    fit_group : callable (list of indices) -> list of models
        Fits the models of a group.
    """

    def __init__(
        self, groups: Sequence[Hashable], fit_group: Callable[[list[int]], list[M]]
    ) -> None:
        self._members: dict[Hashable, list[int]] = {}
        for index, group in enumerate(groups):
            self._members.setdefault(group, []).append(index)
        self._groups = groups
        self._fit_group = fit_group
        self._locks = {group: threading.Lock() for group in self._members}
        self._found: dict[int, M] = {}
        self._errors: dict[Hashable, Exception] = {}
        self._next = iter(range(len(groups)))
        self._counting = threading.Lock()

    def __iter__(self) -> SharedFits[M]:
        return self

    def __next__(self) -> tuple[int, M]:
        with self._counting:
            index = next(self._next)
        group = self._groups[index]
        with self._locks[group]:
            if group in self._errors:
                raise self._errors[group]
            if index not in self._found:
                self._fit(group)
            return index, self._found.pop(index)

    def _fit(self, group: Hashable) -> None:
        members = self._members[group]
        try:
            models = self._fit_group(members)
        except Exception as error:
            self._errors[group] = error  # every model of the group fails alike
            raise
        self._found.update(zip(members, models, strict=True))
