"""What goes into a page: figures as SVG with its colours, light and dark; numbers to read."""

from __future__ import annotations

import io
import re
from typing import Any

# Stand-ins that become CSS, so that one picture serves a light and a dark page.
INK, FAINT, PAPER, LINE = "#010203", "#010204", "#010205", "#010206"
_CSS = {
    INK: "currentColor",
    FAINT: "var(--faint, #808489)",
    PAPER: "var(--paper, #fff)",
    LINE: "var(--line, #a0a3a888)",
}
# Petroff's ten colours, chosen for colour-vision deficiencies (arXiv:2107.02270), the two lightest
# of them darkened to stand out from a white page.
TEN = ("#3f90da", "#e39400", "#bd1f01", "#94a4a2", "#832db6",
       "#a96b59", "#e76300", "#b9ac70", "#717581", "#45aeb2")  # fmt: skip


def readable(value: float) -> str:
    """Return a number with about four digits, large ones with thousands separators."""
    if 1e4 <= abs(value) < 1e10:
        return f"{value:,.0f}"
    return f"{value:.6g}" if abs(value) >= 1e10 else f"{value:.4g}"


def new_figure(width: float, height: float) -> Any:
    """Return an empty Matplotlib figure that belongs to no window.

    Raises
    ------
    ImportError
        Without Matplotlib, with the command that installs it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


def as_svg(figure: Any, name: str, title: str) -> str:
    """Return a figure as an SVG element, the same text in every run.

    Parameters
    ----------
    figure : matplotlib Figure
        Drawn with the stand-in colours of this file, which become the page's.
    name : str
        Makes its ids differ from those of other pictures on the page.
    title : str
        Read to those who do not see it.
    """
    import matplotlib

    for axes in figure.axes:
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)
        axes.tick_params(which="both", color=LINE, labelcolor=FAINT, labelsize=9)
        axes.xaxis.label.set_color(FAINT)
        axes.yaxis.label.set_color(FAINT)
        axes.title.set_color(INK)
    text = io.StringIO()
    # Text stays text (it takes the page's font); ids are the same in every run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", transparent=True, dpi=180, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    for stand_in, value in _CSS.items():
        svg = svg.replace(stand_in, value)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"(?:#|url\(#)([\w-]+)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: m.group(0) if m.group(1) in used else "", svg)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        rf'<svg viewBox="\1" role="img" aria-label="{title}" xmlns:xlink="http://www.w3.org/1999/xlink">',
        svg,
        count=1,
    )
