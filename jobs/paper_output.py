"""What the paper's experiments leave in their directory: CSV, pictures, report, REPRODUCTION.md."""

from __future__ import annotations

import base64
from importlib import resources
from pathlib import Path

import jinja2
import pandas as pd
from matplotlib.figure import Figure

from jobs.paper_pictures import curves_picture, picture_bytes, points_picture

TITLES = {
    "1a": "Figure 1a: LocalKMeans++, r = 3.01",
    "1b": "Figure 1b: LocalKMeans++, r = 6.02",
    "1c": "Figure 1c: perturbed truth, r = 3.01",
    "1d": "Figure 1d: perturbed truth, r = 6.02",
    "2": "Figure 2: misclustering on real data",
    "3": "Figure 3: K-means objective on real data",
    "4a": "Appendix figure a: signal-to-noise ratio (L = 3)",
    "4b": "Appendix figure b: number of clusters (L = 3, r = 3.01)",
    "4c": "Appendix figure c: number of machines (L = 3, mn = 4000, r = 3.01)",
    "seeding": "The seeding's luck (L = 3)",
    "beyond": "Beyond the paper: machines with different rows",
}


def write_figure(folder: Path, figure: str, tables: dict[str, pd.DataFrame]) -> None:
    """Write the tables of a figure as CSV and its picture as PNG and SVG."""
    for name, table in tables.items():
        text = table.to_csv(index=False, float_format="%.6g")
        _write(folder / _csv_name(figure, name), text.encode())
    picture = draw(figure, tables)
    if picture is not None:
        for kind in ("png", "svg"):
            _write(folder / f"figure-{figure}.{kind}", picture_bytes(picture, kind))


def read_tables(folder: Path, figure: str) -> dict[str, pd.DataFrame]:
    """Read back what :func:`write_figure` wrote; empty when the figure was not run."""
    names = ("curves", "trials", "luck", "restarts", "fits", "placements", "reach")
    paths = {name: folder / _csv_name(figure, name) for name in names}
    return {
        name: pd.read_csv(path, dtype={"figure": str, "L": str}, keep_default_na=True)
        for name, path in paths.items()
        if path.is_file()
    }


def _misclustering(curves: list[pd.DataFrame]) -> str:
    """Return A of every curve at every step, all figures in one small table."""
    table = pd.concat(curves)
    table = table[table["quantity"].isin(["A", "A_own"]) & (table["figure"] != "choices")]
    columns = ["figure", "line", "method", "L", "quantity", "t", "mean", "std", "se", "trials"]
    return table[columns].drop_duplicates().to_csv(index=False, float_format="%.5g")


def _csv_name(figure: str, table: str) -> str:
    return f"figure-{figure}.csv" if table == "curves" else f"figure-{figure}-{table}.csv"


def _write(path: Path, data: bytes) -> None:
    """Replace a file at once."""
    aside = path.with_name(f".{path.name}.partial")
    aside.write_bytes(data)
    aside.replace(path)


def draw(figure: str, tables: dict[str, pd.DataFrame]) -> Figure | None:
    """Draw a figure in the paper's form; None for one that is a table only."""
    if figure == "seeding":
        table = tables["restarts"].copy()
        table["r"] = [f"r = {r}" for r in table["r"]]
        picture = points_picture(table, "mean", "se", by="r", rows="seeding")
        picture.axes[0].set_ylabel("final misclustering A, ± 1 se")
        return picture
    if figure == "beyond":
        return _draw_beyond(tables["placements"])
    if figure not in TITLES:
        return None
    table = tables["curves"]
    if figure in ("2", "3"):
        panels = dict(iter(table.groupby("line", sort=False)))
        return curves_picture(table, panels, "A" if figure == "2" else "objective", "method")
    if figure.startswith("4"):
        weighted = table["method"] == "L = 3"
        panels = {"LocalKMeans++, L = 3": table[weighted]}
        if figure == "4c":
            panels = {
                "L = 3, size-weighted mean (Algorithm 1)": table[weighted],
                "L = 3, plain mean (Section 1.1)": table[~weighted],
            }
        return curves_picture(table, panels, "A", "line")
    shown = table[~table["method"].str.contains("plain mean")]
    first = table.iloc[0]
    title = f"{first['init']}, r = {first['r']:.2f}"
    return curves_picture(shown, {title: shown}, "A", "method")


def _draw_beyond(table: pd.DataFrame) -> Figure:
    table = table.copy()
    table["L"] = [f"L = {steps}" for steps in table["L"]]
    table["above"] = 100.0 * (table["relative"] - 1.0)
    table["above_se"] = 100.0 * table["relative_se"].fillna(0.0)
    picture = points_picture(table, "above", "above_se", by="L", rows="placement", mark="method")
    picture.axes[0].set_ylabel("objective above centralized, %")
    return picture


def write_report(folder: Path, command: str) -> Path:
    """Write report.html and REPRODUCTION.md from every CSV in the directory.

    Returns
    -------
    Path
        Of the report.
    """
    from jobs.paper_text import reproduction

    found = {figure: read_tables(folder, figure) for figure in (*TITLES, "choices")}
    found = {figure: tables for figure, tables in found.items() if tables}
    text = reproduction(found)
    _write(folder / "REPRODUCTION.md", text.encode())
    curves = [tables["curves"] for name, tables in found.items() if "curves" in tables]
    if curves:
        _write(folder / "misclustering.csv", _misclustering(curves).encode())
    pictures = []
    for figure in found:
        png = folder / f"figure-{figure}.png"
        if png.is_file():
            data = base64.b64encode(png.read_bytes()).decode("ascii")
            pictures.append((TITLES[figure], f"data:image/png;base64,{data}"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    source = resources.files("jobs").joinpath("paper.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(source).render(
        pictures=pictures, text=text, command=f"python jobs/reproduce_paper.py {command}"
    )
    _write(folder / "report.html", page.encode())
    return folder / "report.html"
