"""jobs/reproduce_paper.py, small; and the readers of real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from jobs.paper.claims import claims_markdown
from jobs.paper.data import posture_features, read_embeddings, read_posture
from jobs.reproduce_paper import main
from localkmeans_spark.errors import InvalidInputError


@pytest.fixture(scope="module")
def output(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    x = (40 * np.eye(4)[y] + rng.normal(size=(400, 4)) + 50).astype(np.uint8)
    np.savez(folder / "mnist.npz", X=x, y=y, scale=0.5)
    for figure in ("1a", "1b", "2", "4c", "seeding", "beyond"):
        main(["--figure", figure, "--trials", "2", "--quick", "--output", str(folder / "out"),
              "--mnist", str(folder / "mnist.npz")])  # fmt: skip
    return folder / "out"


def test_tables_are_tidy(output):
    table = pd.read_csv(output / "figure-1a.csv")
    assert list(table.columns[:3]) == ["figure", "line", "init"]
    errors = table[table["quantity"] == "A"]
    assert set(errors["t"]) == set(range(1, 7))
    assert set(errors["method"]) >= {"L = 1", "L = 2", "L = 3", "L = T/2", "no aggregation"}
    first = errors[errors["t"] == 1]
    assert first["mean"].nunique() == 1, "A^(1) is that of the initial centers, whatever L"
    assert (table["trials"] == 2).all()
    np.testing.assert_allclose(table["se"], table["std"] / np.sqrt(2), rtol=1e-4)


def test_every_figure_has_its_files(output):
    for figure in ("1a", "1b", "2", "3", "4c", "seeding", "beyond"):
        for kind in ("png", "svg"):
            assert (output / f"figure-{figure}.{kind}").stat().st_size > 5_000
    page = (output / "report.md").read_text(encoding="utf-8")
    assert page.count("![") == 7
    assert not list(output.glob(".*partial"))


def test_the_claims_judge_what_was_run(output):
    table = pd.read_csv(output / "claims.csv")
    run = table[table["verdict"] != "not run"]
    assert set(run["claim"]) == {"1", "2", "3", "4", "8", "8 (plain mean)", "9"}
    assert set(run["holds"]) <= {"yes", "no"} and run[["value", "se"]].notna().all(axis=None)
    assert len(table[table["verdict"] == "not run"]) == 3
    assert claims_markdown(table) in (output / "report.md").read_text(encoding="utf-8")


def test_beyond_starts_all_methods_alike(output):
    fits = pd.read_csv(output / "figure-beyond-fits.csv")
    assert len(fits) == 4 * 3
    central = fits[(fits["method"] == "plain") & (fits["L"] == 1)]
    np.testing.assert_allclose(central["relative"], 1.0)
    assert (central["reach_exchanges"] <= central["exchanges"]).all()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--figure", "2"], "must be given with --mnist"),
        (["--figure", "9"], "--figure"),
        (["--mnist", "nowhere.npz"], "nowhere.npz"),
        (["--trials", "0"], "--trials"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_slips_end_in_one_line(argv, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*argv, "--output", str(tmp_path / "out")])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and words in err
    assert not (tmp_path / "out").exists()


def test_output_is_a_directory(tmp_path, capsys):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["--figure", "1a", "--output", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert "--output" in capsys.readouterr().err
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_posture_rows_become_38_numbers(tmp_path):
    markers = np.full(36, np.nan)
    markers[:6] = [1, 2, 3, 5, 6, 7]
    ((row,), (n_seen,)) = posture_features(markers[None, :])
    assert n_seen == 2
    assert row.shape == (38,)
    assert row[:6].tolist() == [1, 2, 3, 5, 6, 7]
    assert row[6:36].reshape(10, 3).tolist() == [[3, 4, 5]] * 10
    # Two markers, each sqrt(12) from their mean.
    assert row[36:].tolist() == pytest.approx([20.0, np.sqrt(12)])


def test_posture_reader_reads_the_uci_form(data_dir, tmp_path):
    part = np.load(data_dir / "postures_partial.npz")
    names = [f"{axis}{i}" for i in range(12) for axis in "XYZ"]
    lines = [",".join(["Class", "User", *names]), ",".join(["0"] * 38)]
    some = np.arange(0, len(part["y"]), len(part["y"]) // 49)[:50]
    for x, y, user in zip(part["X"][some], part["y"][some], part["user"][some], strict=True):
        values = ["?" if np.isnan(value) else repr(float(value)) for value in x]
        lines.append(",".join([str(y), str(user), *values]))
    path = tmp_path / "Postures.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = read_posture(str(path))
    assert data.name == "Posture (50 rows)"
    assert data.x.shape == (50, 38) and np.isfinite(data.x).all()
    assert data.k == len(np.unique(part["y"][some])) > 1
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="header"):
        read_posture(str(path))


_NAMES = ["Class", "User", *(f"{axis}{i}" for i in range(12) for axis in "XYZ")]
_ROW = ["1", "0", *["1.5"] * 9, *["?"] * 27]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([_NAMES, _ROW, [*_ROW[:4], "abc", *_ROW[5:]]], "row 2: Z0 must be a finite number or ?"),
        ([_NAMES, _ROW, [*_ROW[:4], "inf", *_ROW[5:]]], "row 2: Z0 must be a finite number or ?"),
        ([_NAMES, _ROW, _ROW[:-1]], "row 2: Z11 must be a finite number or ?; got ''"),
        ([_NAMES, _ROW, [*_ROW, "?"]], "Expected 38 fields in line 3, saw 39"),
        ([_NAMES, [*_ROW, "?"]], "the header must be Class,User,X0,Y0,Z0,...,Z11"),
        ([_NAMES, ["one", *_ROW[1:]]], "row 1: Class must be a finite number or ?; got 'one'"),
        ([_NAMES, ["?", *_ROW[1:]]], "row 1: Class must be a finite number or ?; got '?'"),
        ([_NAMES, ["1", "0", *["?"] * 36]], "at least 1 visible marker; got 1 row without"),
        ([[*_NAMES[:37], "W11"], _ROW], "the header must be Class,User,X0,Y0,Z0,...,Z11"),
        ([[*_NAMES, "W"], _ROW], "the header must be Class,User,X0,Y0,Z0,...,Z11"),
        ([_NAMES, _ROW, _ROW], "must be a file with rows of at least 2 classes; got 1"),
        ([_NAMES], "must be a file with rows"),
        ([], "must be a CSV file in UTF-8; got No columns to parse"),
    ],
)
def test_slips_in_a_posture_file_end_in_one_line(rows, words, tmp_path, capsys):
    path = tmp_path / "p.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["--figure", "2", "--posture", str(path), "--output", str(tmp_path / "out")])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and str(path) in err and words in err
    assert not (tmp_path / "out").exists()


def test_a_binary_file_is_no_posture_file(tmp_path):
    path = tmp_path / "p.csv"
    for content in (b"\x00\xff\xfe" * 50, (",".join(_NAMES) + "\n").encode() + b"\xff\x00\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"p\.csv must be a CSV file in UTF-8|header"):
            read_posture(str(path))


def test_embeddings_are_finite_and_of_several_classes(tmp_path):
    path = str(tmp_path / "e.npz")
    for value in (np.nan, np.inf, 1e300):
        np.savez(path, X=[[0.0, value], [1.0, 2.0]], y=[7, 3])
        with pytest.raises(ValueError, match=r"X must be finite.* got 1 row with NaN or infinity"):
            read_embeddings("e", path)
    np.savez(path, X=[[0.0, 1.0], [1.0, 2.0]], y=[7, 7])
    with pytest.raises(ValueError, match="at least 2 classes; got 1"):
        read_embeddings("e", path)


def test_embeddings_are_scaled(tmp_path):
    x = np.array([[0, 4], [2, 6]], dtype=np.uint8)
    np.savez(tmp_path / "e.npz", X=x, y=[7, 3], scale=0.25)
    data = read_embeddings("e", str(tmp_path / "e.npz"))
    assert data.x.tolist() == [[0, 1], [0.5, 1.5]]
    assert (data.labels.tolist(), data.k) == ([1, 0], 2)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.eye(2)},
        {"X": np.eye(2), "y": [1, 2, 3]},
        {"X": np.ones(2), "y": [1, 2]},
        {"X": [["a"]], "y": [1]},
        {"X": np.array([{}]), "y": [1]},
    ],
)
def test_slips_in_embeddings_end_in_one_line(arrays, tmp_path):
    np.savez(tmp_path / "e.npz", **arrays)
    (tmp_path / "broken.npz").write_bytes((tmp_path / "e.npz").read_bytes()[:100])
    for name in ("e", "broken"):
        with pytest.raises(InvalidInputError, match=rf"{name}.npz: .* must be ") as caught:
            read_embeddings("e", str(tmp_path / f"{name}.npz"))
        assert "\n" not in str(caught.value)
