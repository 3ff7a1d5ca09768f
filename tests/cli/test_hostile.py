"""Hostile command lines, files and names: one line on stderr, exit status 2, nothing removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark import LocalKMeansModel

LONG = "n" * 300
ESCAPES = "\x1b[2J\x07\x9b\u202e"


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with inputs, a model, a damaged one and things that are nobody's to remove."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = pd.DataFrame({"name": ["a", "b", "c", "d"], "x": [0.0, 1.0, 9.0, 10.0]})
    rows.to_csv(folder / "t.csv", index=False)
    np.savez(folder / "t.npz", X=rows[["x"]].to_numpy())
    (folder / "in").mkdir()
    rows.to_csv(folder / "in" / "t.csv", index=False)
    (folder / "precious").mkdir()
    (folder / "precious" / "metrics.json").write_text("{}")
    (folder / "precious" / "_SUCCESS").touch()
    model = LocalKMeansModel([[0.0], [10.0]])
    model.setFeaturesCols(["x"]).write().save(str(folder / "model"))
    model.write().save(str(folder / "deep"))
    for part in (folder / "deep" / "metadata").iterdir():
        part.unlink()
    (folder / "deep" / "metadata" / "part-00000").write_text("[" * 100_000)
    return folder


def slips() -> dict[str, tuple[str, str]]:
    """Words of a command, and what its one line says; {0} is the directory."""
    fit, predict = "fit --input {0}/t.csv --k 2 --no-report", "predict --input {0}/t.csv"
    out = " --output {0}/out"
    return {
        "k of 0": (f"fit --input {{0}}/t.csv --k 0{out}", "--k must be an integer >= 1; got 0."),
        "k of words": (f"fit --input {{0}}/t.csv --k x{out}", "--k must be an integer >= 1; got"),
        "huge k": (f"fit --input {{0}}/t.csv --k {'9' * 5000}{out}", "--k must be an integer"),
        "no flags": ("fit", "--input (or --table), --k, --output must be given. See --help."),
        "an unknown flag": (f"{fit}{out} --local 5", "No such option"),
        "a cut flag": (f"{fit} --output", "Option '--output' requires an argument"),
        "empty text": (f"{fit} --output ''", "--output must be text"),
        "an unknown command": ("refit --k 2", "No such command 'refit'"),
        "two choices": (f"{fit}{out} --features-col a --feature-cols b", "exclude each other"),
        "an odd format": (f"{fit}{out} --format xml", "Invalid value for '--format': 'xml'"),
        "no such input": (f"fit --input {{0}}/no.csv --k 2{out}", "--input must be an existing"),
        "no such pattern": (f"fit --input {{0}}/no*.csv --k 2{out}", "--input must be an existing"),
        "an odd pattern": (f"fit --input {{0}}/a**b.csv --k 2{out}", "--input must be an existing"),
        "NUL in a path": (f"fit --input a\0b.csv --k 2{out}", "--input must be text in UTF-8"),
        "not UTF-8": (f"fit --input a\udc80.csv --k 2{out}", "--input must be text in UTF-8"),
        "a long input": (f"fit --input {{0}}/{LONG}.csv --k 2{out}", "must be an existing"),
        "a long output": (f"{fit} --output {{0}}/{LONG}", "File name too long"),
        "a long model": (f"predict --model {{0}}/{LONG} --input {{0}}/t.csv{out}", "too long"),
        "a long column": (f"{fit}{out} --label-col {LONG}", "It has: name, x"),
        "escapes in a flag": (f"{fit}{out} --label-col {ESCAPES}", "'\\\\x1b[2J\\\\x07\\\\x9b"),
        "escapes in a path": (f"fit --input {{0}}/{ESCAPES}.csv --k 2{out}", "\\\\x1b[2J"),
        "a secret": (f"fit --input s3a://KEY:SECRET@b/t.csv --k 2{out}", "S3AFileSystem"),
        "a secret in the output": (f"{fit} --output s3a://KEY:SECRET@b/t", "S3AFileSystem"),
        "output exists": (f"{fit} --output {{0}}/t.npz", "a path where nothing exists"),
        "output is a file": (f"{fit} --output {{0}}/t.npz --overwrite", "earlier output of fit"),
        "output is precious": (f"{fit} --output {{0}}/precious --overwrite", "earlier output of"),
        "predict's is, too": (
            f"{predict} --model {{0}}/model --output {{0}}/precious --overwrite",
            "earlier output of predict",
        ),
        "output holds the input": (f"{fit} --output {{0}} --overwrite", "apart from what is read"),
        "by a pattern": (
            "fit --input {0}/i*/t.csv --k 2 --output {0}/in --overwrite", "apart from what is read",
        ),
        "output in the input": (
            "fit --input {0}/in --k 2 --output {0}/in/out", "apart from what is read",
        ),
        "output in the model": (
            f"{predict} --model {{0}}/model --output {{0}}/model/out", "apart from what is read",
        ),
        "no place for output": (f"{fit} --output /proc/x", "in a directory that can be written"),
        "output below a file": (f"{fit} --output {{0}}/t.npz/x", "in a directory that can be"),
        "no model": (f"{predict} --model {{0}}/in{out}", "--model must be a saved model"),
        "a deep model": (f"{predict} --model {{0}}/deep{out}", "saved LocalKMeansModel"),
        "another column": (f"{predict} --model {{0}}/model --feature-cols y{out}", "name, x"),
        "diagnose with both": (
            "diagnose --input {0}/t.csv --model {0}/model --label-col x",
            "--label-col and --model exclude each other. See --help.",
        ),
        "diagnose with neither": (
            "diagnose --input {0}/t.csv", "error: --label-col (or --model) must be given.",
        ),
        "diagnose with nothing": (
            "diagnose", "--input (or --table), --label-col (or --model) must",
        ),
    }  # fmt: skip


def snapshot(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", slips())
def test_one_line(run: Callable[..., Any], place: Path, name: str) -> None:
    words, told = slips()[name]
    before = snapshot(place)
    found = run(*(word.format(place).strip("'") for word in words.split(" ")))
    assert found.error.isprintable()
    assert told.replace("\\\\", "\\") in found.error.replace("\\\\", "\\")
    assert "SECRET" not in found.stderr
    assert snapshot(place) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("local-step = 5", "Did you mean 'local-steps'"),
        ("xyzzy = 5", "key 'xyzzy'"),
        ('"\\u001b[2J" = 5', "key '\\x1b[2J'"),
        ('k = "three"', "job.toml: k must be an integer >= 1; got 'three'"),
        ('safeguard = "no"', "must be true or false; got 'no'"),
        ("k = true", "k must be an integer >= 1; got True"),
        ("input = 3", "input must be text; got 3"),
        ('input = "a\\u0000b"', "input must be text in UTF-8 without NUL"),
        ('output = "\\u0000"', "output must be text in UTF-8 without NUL"),
        ("id-cols = [1]", "id-cols must be names separated by commas"),
        ("[fit]\nk = 3", "key 'fit'"),
        ("k = = 3", "must be a TOML file"),
        ('config = "other.toml"', "key 'config'"),
        ('format = "xml"', "'xml'"),
        ("seed = " + "9" * 5000, "must be a TOML file"),
        ("seed = " + "9" * 4000, "seed must be an integer of at most 64 bits"),
        ("k = " + "[" * 3000, "must be a TOML file"),
        ("a." * 3000 + "b = 1", "key 'a'"),
        (b"k = 3 # \xff", "must be a TOML file"),
        (None, "must be a readable file"),
    ],
)
def test_bad_config_files(
    run: Callable[..., Any], tmp_path: Path, text: str | bytes | None, told: str
) -> None:
    path = tmp_path / "job.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = run("fit", "--config", path)
    assert told in found.error
    assert len(found.error) < 1700


def test_names_of_files_are_not_printed_raw(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / f"t{ESCAPES}.csv"
    path.write_text(f"name{ESCAPES},x,y\nq,1,2\nr,3,4\ns,9,9\n")
    words = ["--input", path, "--k", 2, "--no-report"]
    told = run("fit", *words, "--output", tmp_path / f"o{ESCAPES}")
    assert told.status == 0, told.stderr
    assert all(line.isprintable() for line in [*told.lines, *told.stderr.splitlines()])
    assert told.metrics["output"] == str(tmp_path / f"o{ESCAPES}")


def test_a_secret_is_nowhere_in_the_output(
    run: Callable[..., Any], spark: SparkSession, elsewhere: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere" / "t.csv").write_text("a,x\nq,1\nr,3\ns,9\n")
    path = elsewhere.replace("viewfs://", "viewfs://KEY:SECRET@")
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    name = elsewhere.split("/")[2]
    conf.set(f"fs.viewfs.mounttable.KEY:SECRET@{name}.link./data", f"file://{tmp_path}/elsewhere")
    told = run("fit", "--input", f"{path}/t.csv", "--k", 2, "--output", f"{path}/out")
    said = "\n".join([*told.lines, told.stderr])
    assert "SECRET" not in said, said
    for file in (tmp_path / "elsewhere").rglob("*"):
        assert not file.is_file() or b"SECRET" not in file.read_bytes(), file
