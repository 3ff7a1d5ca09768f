"""The report and its parts: pages, pictures, tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from jobs.durations import duration
from jobs.pictures import cluster_colors
from jobs.pixels import Layout, image_layout
from jobs.projection import principal_plane
from jobs.report import ReportData, render
from jobs.tables import json_line, rounds_table, sizes_table
from localkmeans_spark.metrics import Confusion
from localkmeans_spark.summary import FitRecord, RoundRecord

VOID = {"meta", "img", "br", "hr", "path", "use", "image", "line", "rect", "link"}


def round_record(number: int, **values: Any) -> RoundRecord:
    row = {
        "round": number, "iteration": 5 * (number - 1), "local_steps": 5,
        "inertia": 100.0 / number, "center_shift": 1.0 / number, "max_local_drift": 0.5,
        "rms_deviation": 0.1, "empty_clusters": 0, "reverted": False, "bytes_down": 80,
        "bytes_up": 160, "seconds": 0.25,
    }  # fmt: skip
    return RoundRecord(**{**row, **values})


def fit_record(k: int = 3, d: int = 4, n: int = 90, **values: Any) -> FitRecord:
    sizes = [n // k + (i < n % k) for i in range(k)]
    record = FitRecord(
        k_requested=k, k=k, n_points=n, n_features=d, n_partitions=2, n_skipped=0,
        sum_weights=float(n), local_steps=5, max_iter=20, tol=1e-4, safeguard=True,
        dtype="float32", init_mode="random", seed=1, seeding_passes=1, n_iter=10, n_rounds=2,
        reverts=0, converged=True, inertia=33.0, cluster_sizes=sizes,
        cluster_weights=[float(size) for size in sizes], cluster_inertia=[33.0 / k] * k,
        bytes_exchanged=480,
        seconds={"ingest": 1.0, "seed": 0.5, "iterate": 2.0, "final": 0.1, "total": 3.6},
        rounds=[round_record(1), round_record(2)],
    )  # fmt: skip
    return replace(record, **values)


def report_data(record: FitRecord, **values: Any) -> ReportData:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(record.k, record.n_features)) * 9
    clusters = np.arange(record.n_points) % record.k
    sample = centers[clusters] + rng.normal(size=(record.n_points, record.n_features))
    data = ReportData(
        title="k-means on <rows> & co", record=record, centers=centers, feature_names=[],
        sample=sample, sample_clusters=clusters, run={"input": "a<b>.csv"}, command="fit --k 3",
    )  # fmt: skip
    return replace(data, **values)


class _Balance(HTMLParser):
    """Checks that every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def check_page(page: str) -> None:
    parser = _Balance()
    parser.feed(page)
    assert parser.open == []
    # Everything is inside: no address but those that XML names things by, and data.
    addresses = set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page))
    assert all(address.startswith(("#", "data:")) for address in addresses), addresses
    assert "<script" not in page
    assert not re.search(
        r"\bnan\b|\binf\b|None", re.sub(r"<style.*?</style>|<svg.*?</svg>", "", page, flags=re.S)
    )


def words(page: str) -> str:
    bare = re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]+>", " ", page, flags=re.S)
    return " ".join(bare.split())


def test_the_page_says_what_happened() -> None:
    record = fit_record(
        reverts=1, n_skipped=7, warnings=["only 3 distinct rows"],
        rounds=[
            round_record(1),
            round_record(2),
            round_record(3, inertia=70.0, reverted=True, center_shift=0.0),
            round_record(4, local_steps=2),
        ],
    )  # fmt: skip
    page = render(report_data(record))
    check_page(page)
    told = words(page)
    for part in (
        "k-means on &lt;rows&gt; &amp; co",
        "90 rows of 4 features in 2 partitions, grouped into 3 clusters",
        "1 round made the cost worse and was taken back",
        "only 3 distinct rows",
        "7 rows with null, NaN or infinite features were left out",
        "taken back: cost had risen",
        "L is now 2",
        "a&lt;b&gt;.csv",
        "fit --k 3",
    ):
        assert part in told, part


def test_labels_are_paired_with_clusters() -> None:
    counts = np.array([[1, 29, 0], [0, 0, 30], [28, 2, 0]])
    page = render(report_data(fit_record(), confusion=Confusion(["x", "y", "<z>"], counts, 4)))
    check_page(page)
    told = words(page)
    assert "3.3% of the labelled rows" in told
    assert "4 rows have no label" in told
    # clusters stand in the order of the labels they match: 1, 2, 0
    assert "label 1 2 0 x 29 1 y 30 &lt;z&gt; 2 28" in told


@pytest.mark.parametrize(
    ("k", "d", "n"), [(1, 1, 1), (1, 3, 50), (2, 1, 30), (5, 2, 5), (70, 30, 400), (150, 3, 900)]
)
def test_sizes_of_every_kind(k: int, d: int, n: int) -> None:
    check_page(render(report_data(fit_record(k, d, n))))


def test_odd_fits() -> None:
    record = fit_record(
        inertia=0.0, cluster_sizes=[90, 0, 0], cluster_weights=[90.0, 0.0, 0.0],
        cluster_inertia=[0.0, 0.0, 0.0], rounds=[], n_rounds=0, converged=False,
    )  # fmt: skip
    data = report_data(record)
    check_page(render(data))
    check_page(render(replace(data, sample=data.sample[:0], sample_clusters=np.array([], int))))
    same = np.zeros_like(data.sample)
    check_page(render(replace(data, sample=same, weighted=True, feature_names=list("abcd"))))


def test_ids_in_the_page_are_unique() -> None:
    parser = _Balance()
    parser.feed(render(report_data(fit_record())))
    assert len(parser.ids) == len(set(parser.ids))


def test_the_same_fit_gives_the_same_page() -> None:
    assert render(report_data(fit_record())) == render(report_data(fit_record()))


def test_names_of_features_are_shown_for_those_that_differ_most() -> None:
    centers = np.zeros((3, 20))
    centers[:, 17] = [1, 2, 3]
    centers[:, 4] = [5, 0, 9]
    data = report_data(fit_record(d=20), feature_names=[f"f{i}" for i in range(20)])
    told = words(render(replace(data, centers=centers)))
    assert "The 8 of 20 features that differ most" in told
    head = told.split("The 8 of 20")[1]
    assert "f4" in head
    assert "f17" in head


def smooth_images(m: int, side: int, planes: int) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=(m, side, side, planes))
    return noise.cumsum(axis=1).cumsum(axis=2)


@pytest.mark.parametrize(
    ("rows", "planes"),
    [
        (smooth_images(200, 8, 1).reshape(200, -1), "gray"),
        (smooth_images(200, 8, 3).reshape(200, -1), "last"),
        (smooth_images(200, 8, 3).transpose(0, 3, 1, 2).reshape(200, -1), "first"),
    ],
)
def test_images_are_recognised(rows: np.ndarray, planes: str) -> None:
    layout = image_layout(rows)
    assert layout is not None
    assert (layout.side, layout.planes) == (8, planes)


def test_digits_are_images() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits().data
    assert image_layout(digits) == Layout(8, "gray", pytest.approx(0.32, abs=0.02))
    data = report_data(fit_record(10, 64, 300), sample=digits[:300], centers=digits[:10])
    page = render(data)
    check_page(page)
    assert page.count('alt="center of cluster') == 10


@pytest.mark.parametrize("d", [64, 65, 9, 192])
def test_tables_are_no_images(d: int) -> None:
    rng = np.random.default_rng(0)
    blobs = rng.normal(size=(5, d))[rng.integers(5, size=400)] * 5 + rng.normal(size=(400, d))
    assert image_layout(blobs) is None
    one_factor = rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, d))
    assert image_layout(one_factor) is None
    series = rng.normal(size=(400, d)).cumsum(axis=1)
    assert image_layout(series) is None
    assert image_layout(np.ones((50, d))) is None
    assert image_layout(blobs[:5]) is None


def test_pixels_of_a_colour_image() -> None:
    image = np.arange(75).reshape(5, 5, 3)
    np.testing.assert_array_equal(Layout(5, "last", 0).image(image.ravel()), image)
    planes = image.transpose(2, 0, 1).ravel()
    np.testing.assert_array_equal(Layout(5, "first", 0).image(planes), image)


@pytest.mark.parametrize("shape", [(60, 5), (6, 40), (30, 1), (1, 4), (2, 2)])
def test_plane_is_that_of_the_svd(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(2).normal(size=shape) * np.arange(1, shape[1] + 1)
    plane = principal_plane(rows)
    assert plane.project(rows).shape == (shape[0], 2)
    _, singular, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    for i in range(min(2, int((singular > 1e-9).sum()))):
        assert abs(plane.axes[i] @ right[i]) == pytest.approx(1)
        assert plane.shares[i] == pytest.approx(singular[i] ** 2 / (singular**2).sum())
        assert plane.axes[i].max() >= -plane.axes[i].min()


@pytest.mark.parametrize("k", [1, 10, 11, 60])
def test_colours_differ(k: int) -> None:
    colors = cluster_colors(k)
    assert len(set(colors)) == k
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    for paper in (0.957, 0.0098):  # the two pages of the template
        contrast = (np.maximum(luminance, paper) + 0.05) / (np.minimum(luminance, paper) + 0.05)
        assert contrast.min() > 2.1
    steps = np.abs(rgb[1:] - rgb[:-1]).max(axis=1)
    assert k == 1 or steps.min() > 0.1  # neighbours in number are far apart


def test_rounds_table() -> None:
    record = fit_record(rounds=[round_record(1), round_record(2, local_steps=1, empty_clusters=2)])
    lines = rounds_table(record).splitlines()
    assert lines[0].split() == "round iteration local steps inertia shift drift note".split()
    assert lines[1].split() == ["1", "0", "5", "100", "1", "0.5"]
    assert lines[2].split() == "2 5 1 50 0.5 0.5 L is now 1, 2 empty".split()
    assert lines[3].split() == ["converged", "10", "33"]
    assert lines[4].startswith("shift: ")
    many = fit_record(rounds=[round_record(i) for i in range(1, 500)])
    assert len(rounds_table(many).splitlines()) == 34


def test_sizes_table() -> None:
    lines = sizes_table({0: 1, 1: 3}).splitlines()
    assert [line.split() for line in lines[1:]] == [["1", "3", "75.0%"], ["0", "1", "25.0%"]]
    assert len(sizes_table(dict.fromkeys(range(500), 2)).splitlines()) == 32


def test_json_is_standard() -> None:
    text = json_line({"a": float("nan"), "b": 1.5, "c": "é"})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": 1.5, "c": "é"}
    assert "\n" not in text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (42.4, "42 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said
