"""What pictures and pages share: figures as SVG in a page's colours; curves, numbers and words."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from localkmeans_spark.records import FitRecord

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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

CURVE = {"marker": "o", "markersize": 4, "linewidth": 1.8}


class Illustrated:
    """An answer that has a sentence, a table and a picture, and shows all in a notebook."""

    table: pd.DataFrame
    reason: str
    # The picture's name, what it says to those who do not see it, digits of the table's numbers.
    _name: str
    _title: str
    _digits: int
    _hidden: tuple[str, ...] = ()  # columns that the page leaves out

    def _picture(self, ink: str, faint: str) -> Figure:
        raise NotImplementedError

    def plot(self) -> Figure:
        """Draw the picture.

        Returns
        -------
        matplotlib.figure.Figure
            ``plot().savefig("picture.png")`` keeps it.
        """
        return self._picture("black", "#62676e")

    def picture(self, kind: str = "png") -> bytes:
        """Return the picture of :meth:`plot` as the bytes of a file: ``"png"``, ``"svg"``, ..."""
        data = io.BytesIO()
        self.plot().savefig(data, format=kind, dpi=150)
        return data.getvalue()

    def to_html(self) -> str:
        """Return sentence, picture and table as a piece of HTML without scripts."""
        svg = as_svg(self._picture(INK, FAINT), self._name, self._title)
        shown = self.table.drop(columns=list(self._hidden))
        table = shown.to_html(index=False, border=0, float_format=f"{{:.{self._digits}g}}".format)
        return (
            f'<div style="max-width:46rem"><p>{self.reason}</p>{svg}'
            f'<div style="overflow-x:auto">{table}</div></div>'
        )

    def _repr_html_(self) -> str:
        try:
            return self.to_html()
        except ImportError:  # no matplotlib: the table alone
            return f"<p>{self.reason}</p>{self.table.to_html(index=False)}"


def high_and_low(differences: np.ndarray, names: Any) -> str:
    """Say what sets a cluster apart, as in "high visits, low age"; empty if nothing does.

    Up to three features are named, each at least half a standard deviation from the rest.

    Parameters
    ----------
    differences : ndarray of shape (d,)
        From the other clusters' means, in standard deviations.
    names : sequence of str
        Of the features.
    """
    telling = np.argsort(-np.abs(differences), kind="stable")[:3]
    return ", ".join(
        f"{'high' if differences[i] > 0 else 'low'} {names[i]}"
        for i in telling
        if abs(differences[i]) >= 0.5
    )


def draw_costs(axes: Any, record: FitRecord, **style: Any) -> None:
    """Draw ``record.costs()``; rounds that were taken back are marked apart."""
    axes.plot(*zip(*record.costs(), strict=True), label="cost", **CURVE, **style)
    undone = [(row.round, row.inertia) for row in record.rounds if row.reverted]
    if undone:
        axes.plot(*zip(*undone, strict=True), "X", color="#d9480f", label="taken back")


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
