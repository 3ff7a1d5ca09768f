"""The report: its page and its pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from localkmeans_spark.cli.messages import rounds_table
from localkmeans_spark.cli.report import (
    ReportData,
    principal_plane,
    projection_picture,
    render,
)
from localkmeans_spark.metrics import Confusion
from localkmeans_spark.summary import FitRecord, LocalKMeansSummary, RoundRecord

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
            round_record(
                3, inertia=70.0, reverted=True, center_shift=0.0,
                note="went back: the partitions' centers disagree",
            ),
            round_record(4, local_steps=2),
        ],
    )  # fmt: skip
    page = render(report_data(record))
    check_page(page)
    told = words(page)
    for part in (
        "k-means on &lt;rows&gt; &amp; co",
        "90 rows of 4 features in 2 partitions, grouped into 3 clusters",
        "1 round was taken back; the table of the rounds says why.",
        "only 3 distinct rows",
        "7 rows with null, NaN or infinite features were left out",
        "taken back: the partitions&#39; centers disagree",
        "L is now 2",
        "a&lt;b&gt;.csv",
        "fit --k 3",
    ):
        assert part in told, part


def test_a_round_taken_back_has_the_reason_of_its_record() -> None:
    notes = ["went back: the local steps before had raised the inertia", ""]
    rounds = [round_record(i + 1, reverted=True, note=note) for i, note in enumerate(notes)]
    table = rounds_table(fit_record(reverts=2, rounds=rounds))
    assert "taken back: the local steps before had raised the inertia\n" in table
    assert table.splitlines()[2].endswith("  taken back")


def test_names_of_anything_are_shown_as_text() -> None:
    data = report_data(fit_record(), feature_names=["a\x1b[2J", "<b>", "\u202ec", "d\n"])
    page = render(replace(data, title="x\x00y", run={"features": "a\x1b[2J"}, command="c\x07"))
    check_page(page)
    assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(page)
    assert r"a\x1b[2J" in words(page)


def test_the_page_answers_in_the_order_of_its_readers_questions() -> None:
    data = report_data(fit_record(), feature_names=["age", "visits", "kids", "km"])
    measures = {"silhouette": 0.5, "calinski_harabasz": 87.0, "agreement": 0.5}
    page = render(replace(data, measures=measures))
    check_page(page)
    told = words(page)
    asked = ("How good it is", "Who the clusters are", "Where they lie", "What was run")
    places = [told.index(question) for question in asked]
    assert places == sorted(places)
    assert "Silhouette 0.500" in told and "Agreement 0.50" in told
    # CH = (between / 2) / (within / 87) = 87: between = 2 within
    assert "Explained 66.7%" in told
    assert "Fits from other seeds find other clusters" in told
    centers, weights = data.centers, np.array(data.record.cluster_weights)
    rest = (weights @ centers - weights[:, None] * centers) / (weights.sum() - weights)[:, None]
    apart = (centers - rest) / data.sample.std(axis=0)
    best = int(np.abs(apart[0]).argmax())
    word = "high" if apart[0, best] > 0 else "low"
    assert f"Cluster 0 30 rows, 33.3% {word} {data.feature_names[best]}" in told
    check_page(render(replace(data, measures=dict.fromkeys(measures, float("nan")))))


def test_a_summary_shows_itself_in_a_notebook() -> None:
    shown = LocalKMeansSummary(fit_record(), "features", "prediction")._repr_html_()
    assert "k=3, trainingCost=33" in shown and "<svg" in shown and "<script" not in shown


def test_labels_are_paired_with_clusters() -> None:
    counts = np.array([[1, 29, 0], [0, 0, 30], [28, 2, 0]])
    confusion = Confusion(["x", "y", "<z>"], counts, 4)
    scores = {"misclustering": 3 / 90, "adjusted_rand": 0.9, "mutual_info": 0.8}
    page = render(report_data(fit_record(), confusion=confusion, measures=scores))
    check_page(page)
    told = words(page)
    assert "3.3% of the labelled rows" in told
    assert "adjusted Rand index 0.900, mutual information 0.800" in told
    assert "4 rows have no label" in told
    # clusters stand in the order of the labels they match: 1, 2, 0
    assert "cluster label 1 2 0 x 29 1 y 30 &lt;z&gt; 2 28" in told


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


@pytest.mark.parametrize("shape", [(60, 5), (6, 40), (30, 1), (1, 4), (2, 2)])
def test_plane_is_that_of_the_svd(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(2).normal(size=shape) * np.arange(1, shape[1] + 1)
    middle, directions, shares = principal_plane(rows)
    np.testing.assert_allclose(middle, rows.mean(axis=0))
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True).reshape(shape[1], -1))
    for i in range(2):
        if i >= shape[1] or values[-1 - i] < 1e-9:
            assert shares[i] == pytest.approx(0, abs=1e-9)
            continue
        assert abs(directions[i] @ vectors[:, -1 - i]) == pytest.approx(1)
        assert shares[i] == pytest.approx(values[-1 - i] / values.sum())
        assert directions[i].max() >= -directions[i].min()


def test_the_picture_of_a_standardized_fit_is_that_of_standardized_rows() -> None:
    data = report_data(fit_record())
    scales = np.array([1.0, 1000.0, 0.5, 3.0])
    wide = replace(data, sample=data.sample * scales, centers=data.centers * scales)
    divided = replace(wide, scales=scales)
    assert projection_picture(divided, False) == projection_picture(data, False)
    assert projection_picture(wide, False) != projection_picture(data, False)
    assert "of the standardized features" in render(divided)
    assert "of the standardized features" not in render(wide)
