"""Models for several parameter maps: those that read the same blocks are fitted side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.spark_private import models_one_by_one

M = TypeVar("M")


def check_maps(maps: object, owner: str) -> None:
    """Raise unless these are parameter maps: a single one would look like none."""
    if not isinstance(maps, list | tuple):
        raise invalid(
            owner, "paramMaps", "a list of parameter maps",
            Fact(f"a value of type {type(maps).__name__}"),
            "Make it with ParamGridBuilder, or call fit for a single map.",
        )  # fmt: skip


def shared_fits(
    groups: Sequence[Hashable], fit_group: Callable[[list[int]], list[M]]
) -> Iterator[tuple[int, M]]:
    """Return an iterator of ``(index, model)``, in the order of the maps, safe for threads.

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
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    locks = {group: threading.Lock() for group in members}
    found: dict[int, M | Exception] = {}

    def model(index: int) -> M:
        own = members[groups[index]]
        with locks[groups[index]]:
            if index not in found:
                try:
                    found.update(zip(own, fit_group(own), strict=True))
                except Exception as error:  # every model of the group fails alike
                    found.update(dict.fromkeys(own, error))
            one = found.pop(index)
        if isinstance(one, Exception):
            raise one
        return one

    return models_one_by_one(model, len(groups))
