"""The tables that commands print: the rounds of a fit, the sizes of clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from localkmeans_spark.summary import FitRecord

_MOST_ROWS = 40
_EDGE_ROWS = 15
_LEGEND = (
    "shift: farthest that a center moved in the round; "
    "drift: farthest that a partition's own center went in its local steps"
)


def round_note(record: FitRecord, place: int) -> str:
    """Say in a few words what was special about a round; empty for most."""
    row = record.rounds[place]
    if row.reverted:
        return row.note.replace("went back", "taken back", 1) or "taken back"
    notes = []
    if place > 0 and row.local_steps != record.rounds[place - 1].local_steps:
        notes.append(f"L is now {row.local_steps}")
    if row.empty_clusters:
        reseeded = f", {row.reseeded} reseeded" if row.reseeded else ""
        notes.append(f"{row.empty_clusters} empty{reseeded}")
    return ", ".join(notes)


def rounds_table(record: FitRecord) -> str:
    """Return the rounds as lines of text, with a last line for the returned centers.

    The inertia of a line is that of the centers the round began with.
    """
    head = ("round", "iteration", "local steps", "inertia", "shift", "drift", "note")
    rows = [
        (
            f"{row.round}",
            f"{row.iteration}",
            f"{row.local_steps}",
            f"{row.inertia:.8g}",
            "" if row.reverted else f"{row.center_shift:.3g}",
            f"{row.max_local_drift:.3g}",
            round_note(record, place),
        )
        for place, row in enumerate(record.rounds)
    ]
    if len(rows) > _MOST_ROWS:
        left_out = len(rows) - 2 * _EDGE_ROWS
        gap = ("...", "", "", "", "", "", f"{left_out} more rounds, see history.csv")
        rows[_EDGE_ROWS:-_EDGE_ROWS] = [gap]
    end = "converged" if record.converged else "end"
    rows.append((end, f"{record.n_iter}", "", f"{record.inertia:.8g}", "", "", ""))
    table = text_table(head, rows)
    note = restarts_note(record)
    return f"{table}\n{_LEGEND}" + (f"\nrestarts: {note}" if note else "")


def restarts_note(record: FitRecord) -> str:
    """Say how the restarts of a fit ended; empty when there was only one."""
    if len(record.restarts) < 2:
        return ""
    dropped = Counter(row.dropped for row in record.restarts if row.dropped is not None)
    parts = [f"{dropped[number]} dropped after round {number}" for number in sorted(dropped)]
    worst = max(row.inertia for row in record.restarts)
    text = ", ".join([f"{len(record.restarts)} in all", *parts])
    return f"{text}; the worst stood at {worst:.6g} or less"


def sizes_table(sizes: dict[int, int]) -> str:
    """Return rows by cluster as lines of text, the largest clusters first."""
    total = sum(sizes.values()) or 1
    order = sorted(sizes, key=lambda cluster: (-sizes[cluster], cluster))
    rows = [(f"{i}", f"{sizes[i]}", f"{sizes[i] / total:.1%}") for i in order]
    if len(rows) > _MOST_ROWS:
        rows[2 * _EDGE_ROWS :] = [("...", f"{len(rows) - 2 * _EDGE_ROWS} smaller clusters", "")]
    return text_table(("cluster", "rows", "share"), rows)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with right-aligned columns, the last one left-aligned if it holds words."""
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    words = head[-1] == "note"

    def line(cells: Sequence[str]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        if words:
            padded[-1] = cells[-1]
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, [head, *rows]))
