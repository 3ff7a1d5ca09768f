"""The documentation: navigation, links, lists; Python that runs, commands that exist.

Building the site (`make docs`) says the rest.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.commands import application

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
READ_HERE = [*PAGES, *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "ARCHITECTURE"))]
# Run elsewhere (NEIGHBOURS), or only where there is a catalog of Databricks.
NOT_RUN = ("NEIGHBOURS", "DATABRICKS")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names GitHub gives to headings; the site's are the same for plain words."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_navigation_names_every_page():
    named = re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in PAGES)


@pytest.mark.parametrize("page", READ_HERE, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)]+)\)|<img src=\"([^\"]+)\"", prose(page))
    for link in (first or second for first, second in links):
        if re.match(r"https?:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert page.parent == ROOT or target.is_relative_to(DOCS), f"{link} is not on the site"
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_site_would_show_as_one_paragraph(page):
    before = ""
    for line in prose(page).splitlines():
        begins = re.match(r"([-*]|\d+\.) |\|", line)
        goes_on = re.match(r"([-*]|\d+\.) |\||  |#|$", before)
        assert not begins or goes_on, f"no blank line before: {line}"
        before = line


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.stem not in NOT_RUN],
    ids=lambda page: page.stem,
)
def test_python_runs(page: Path, spark: SparkSession, tmp_path: Path):
    names = {"spark": spark}
    for block in blocks(page, "python"):
        # Spark takes relative paths from where its JVM was started.
        code = block.replace('"out/', f'"{tmp_path}/')
        exec(compile(code, page.name, "exec"), names)  # noqa: S102
    if page.stem == "guides":  # what its comments say
        assert names["sweep"].reason.startswith("k = 3: silhouette 0.983, the highest, and a fit")
        assert "region" in set(names["about"].profile["column"])
        assert names["drift"].psi < 1e-9


@pytest.mark.parametrize(
    "line",
    sorted({line for page in READ_HERE for block in blocks(page, "sh")
            for line in block.splitlines() if line.startswith("localkmeans ")}),
)  # fmt: skip
def test_commands_take_these_flags(line):
    _, name, *words = shlex.split(line)
    application().commands[name].make_context(name, words)
