"""diagnose on tables whose partitions are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from localkmeans_spark import LocalKMeans
from localkmeans_spark.cli.diagnose import by_label, by_model
from localkmeans_spark.cli.inputs import Table
from localkmeans_spark.cli.main import main
from localkmeans_spark.diagnosis import diagnose

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def _run(capsys, *argv):
    main(["diagnose", *argv])
    out = capsys.readouterr().out
    return out, json.loads(out.splitlines()[-1])


def test_rows_in_any_order_allow_local_steps(spark, tmp_path, capsys):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat(np.arange(3), 200))
    np.savez(tmp_path / "mixed.npz", X=CENTERS[y] + rng.normal(size=(600, 2)), y=y)
    out, found = _run(
        capsys, "--input", str(tmp_path / "mixed.npz"), "--label-col", "label", "--partitions", "4"
    )
    assert (found["partitions"], found["k"], found["local_steps"]) == (4, 3, 5)
    expected = min(np.bincount(part, minlength=3).min() for part in y.reshape(4, 150)) / 200 * 4
    assert found["beta_m"] == pytest.approx(expected, abs=1e-6)
    assert found["gamma_over_sigma"] == pytest.approx(10.0, rel=0.05)
    assert " evenly" in out and "Advice: L = 5." in out


def test_sorted_rows_ask_for_single_steps(spark, tmp_path, capsys):
    y = np.repeat(np.arange(3), 200)
    x = CENTERS[y] + np.random.default_rng(1).normal(size=(600, 2))
    np.savez(tmp_path / "sorted.npz", X=x, y=y)
    path = str(tmp_path / "sorted.npz")
    out, found = _run(capsys, "--input", path, "--label-col", "label", "--partitions", "3")
    assert (found["beta_m"], found["local_steps"]) == (0.0, 1)
    assert " unevenly" in out and "repartition" in out

    frame = spark.createDataFrame([(row.tolist(),) for row in x], "features array<double>")
    LocalKMeans(k=3, seed=1).fit(frame).write().save(str(tmp_path / "model"))
    _, of_model = _run(
        capsys, "--input", path, "--model", str(tmp_path / "model"), "--partitions", "3"
    )
    assert of_model["beta_m"] == found["beta_m"]
    assert of_model["gamma_over_sigma"] == pytest.approx(found["gamma_over_sigma"], rel=0.01)


def test_one_of_label_and_model_is_needed(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["diagnose", "--input", "x.npz"])
    assert stopped.value.code == 2
    assert "--label-col (or --model) must be given" in capsys.readouterr().err


def test_a_few_rows_a_machine_ask_for_fewer_partitions():
    counts = np.full((50, 3), 4)
    found = diagnose(CENTERS, counts, 1.0, ["a", "b", "c"])
    assert found.local_steps == 1
    assert "fewer partitions" in found.text()
    half = np.full((4, 3), 100)
    half[1, 2] = 20
    found = diagnose(CENTERS, half, 1.0, ["a", "b", "c"])
    assert found.scarcest == ("c", 1, pytest.approx(20 / 320 * 4))
    assert found.local_steps == 1 and "would allow L = 5" in found.text()


def test_clusters_that_overlap_are_told():
    even = np.full((4, 3), 100)
    names = ["a", "b", "c"]
    for sigma, separation, words in (
        (1.0, "apart", "Clusters: far enough apart."),
        (3.0, "touching", "not quite far enough apart"),
        (10.0, "overlapping", "Use fewer clusters, or other or better scaled features"),
    ):
        found = diagnose(CENTERS, even, sigma, names)
        assert found.to_dict()["separation"] == separation
        assert words in found.text()
        assert ("the clusters come first" in found.text()) == (separation == "overlapping")
    with pytest.raises(ValueError, match="got a and b with the same center"):
        diagnose(np.zeros((2, 2)), even[:, :2], 1.0, names[:2])


def test_small_sorted_partitions_are_to_be_shuffled():
    counts = np.kron(np.eye(4, dtype=int), np.full((10, 1), 20))
    found = diagnose(np.eye(4), counts, 0.01, ["a", "b", "c", "d"])
    assert counts.shape == (40, 4) and found.local_steps == 1
    assert "shuffle the rows into fewer partitions, df.repartition(20)" in found.text()
    assert " unevenly" in found.text()


def test_the_theorems_assumptions_are_among_the_figures():
    counts, names = np.full((4, 3), 1000), ["a", "b", "c"]
    good = diagnose(CENTERS, counts, 0.01, names).to_dict()
    assert len(good["assumptions"]) == 5 and all(good["assumptions"].values())
    assert (good["steps_needed"], good["exchanges_needed"]) == (30, 6)
    bad = diagnose(CENTERS, counts, 10.0, names).to_dict()["assumptions"]
    assert not bad["r_K >= sqrt(K/alpha) max(sqrt(d/n), 1)"] and bad["n >= log m"]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([[100, 100, 100]], "1 partition holds all 3 clusters."),
        ([[100, 100, 60], [100, 100, 140]], "2 partitions hold 3 clusters evenly."),
        ([[100, 100, 40], [100, 100, 160]], "2 partitions hold 3 clusters unevenly."),
        ([[0, 0, 0], [50, 50, 50], [50, 50, 5]], "c on partition 2: 18% of"),
        ([[0, 0, 0], [50, 50, 50], [50, 50, 5]], "1 more partition has no rows."),
    ],
)
def test_partitions_are_told_in_words(counts, words):
    assert words in diagnose(CENTERS, np.array(counts), 1.0, ["a", "b", "c"]).text()


def test_partitions_have_the_numbers_of_spark_and_nan_is_no_class(spark):
    def rows(*labels):
        return [(CENTERS[int(np.nan_to_num(y))].tolist(), y) for y in labels]

    nan = math.nan
    parts = [[], rows(*[0.0, 1.0] * 20, nan, nan), [], rows(*[0.0, 1.0] * 18, 0.0, 0.0, 0.0)]
    placed = spark.sparkContext.parallelize(range(4), 4).flatMap(lambda i: parts[i])
    frame = spark.createDataFrame(placed, "features array<double>, y double")
    table = Table(frame, "features", (), None, "y", ())
    found = by_label(table)
    figures = found.to_dict()
    assert (figures["k"], figures["partitions"], figures["empty_partitions"]) == (2, 4, 2)
    assert found.scarcest == ("class 1.0", 3, pytest.approx(18 / 38 * 2))
    model = LocalKMeans(k=2, seed=1, initialCenters=CENTERS[:2].tolist()).fit(frame)
    figures = by_model(model, table).to_dict()
    assert (figures["k"], figures["partitions"], figures["empty_partitions"]) == (2, 4, 2)


def test_directions_of_a_cosine_model_are_unit_vectors(spark):
    rng = np.random.default_rng(0)
    angles = np.repeat([0.4, 0.8, 1.2], 200) + 0.1 * rng.normal(size=600)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist()
    frame = spark.createDataFrame([(row,) for row in x], "features array<double>").repartition(4)
    table = Table(frame, "features", (), None, None, ())
    found = {}
    for measure in ("cosine", "euclidean"):
        kmeans = LocalKMeans(k=3, seed=1, distanceMeasure=measure, dtype="float64")
        found[measure] = by_model(kmeans.fit(frame), table)
    assert found["cosine"].sigma == pytest.approx(found["euclidean"].sigma, rel=0.02)


@pytest.mark.parametrize("bad", [",3,2", "NaN,3,2", "Inf,3,2"])
def test_unusable_rows_end_in_one_line(spark, tmp_path, capsys, bad):
    (tmp_path / "t.csv").write_text(f"a,b,y\n1,2,1\n{bad}\n4,5,2\n")
    with pytest.raises(SystemExit) as end:
        main(["diagnose", "--input", str(tmp_path / "t.csv"), "--label-col", "y"])
    assert end.value.code == 2
    assert "got 1 row with null, NaN or infinite values" in capsys.readouterr().err


def test_rows_of_several_widths_end_in_one_line(spark, tmp_path, capsys):
    rows = '{"features": [1.0, 2.0], "y": 1}\n{"features": [1.0, 2.0, 3.0], "y": 2}\n'
    (tmp_path / "t.json").write_text(rows)
    with pytest.raises(SystemExit) as end:
        main(["diagnose", "--input", str(tmp_path / "t.json"), "--label-col", "y"])
    assert end.value.code == 2
    assert "rows of 2 and of 3 features" in capsys.readouterr().err


def test_unusable_rows_are_left_out_where_asked_for(spark, tmp_path, capsys):
    lines = [f"{i % 2 * 10 + i / 100},{i % 3},{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *lines, ",3,1", "NaN,1,0"]) + "\n")
    for rule in ("skip", "keep"):
        words = ["--input", str(tmp_path / "t.csv"), "--label-col", "y", "--handle-invalid", rule]
        main(["diagnose", *words])
        said = capsys.readouterr()
        assert json.loads(said.out.splitlines()[-1])["k"] == 2
        assert "2 rows with null, NaN or infinite values left out" in said.err


def test_labels_of_a_file_are_not_printed_raw(spark, tmp_path, capsys):
    lines = [f"{i % 2 * 10 + i / 100},{chr(27)}[2J{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *lines, "10,x"]) + "\n")
    main(["diagnose", "--input", str(tmp_path / "t.csv"), "--label-col", "y"])
    assert chr(27) not in capsys.readouterr().out


def test_standardised_clusters_are_compared_in_standard_deviations(spark, tmp_path, capsys):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 2)) * [1.0, 20_000.0]  # one cloud
    np.savez(tmp_path / "x.npz", X=x)
    frame = spark.createDataFrame([(row.tolist(),) for row in x], "features array<double>")
    model = LocalKMeans(k=3, seed=1, standardize=True).fit(frame)
    model.write().save(str(tmp_path / "model"))
    words = ["--input", str(tmp_path / "x.npz"), "--model", str(tmp_path / "model")]
    assert _run(capsys, *words)[1]["gamma_over_sigma"] < 5
