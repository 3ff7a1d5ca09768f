"""Time spans in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Say a time span in words, ``"42 s"`` or ``"3 min 5 s"``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 90:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
