"""Tables in Markdown."""

from __future__ import annotations


def markdown_table(rows: list[dict[str, object]]) -> str:
    """Return a Markdown table; the first row gives the columns."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"
