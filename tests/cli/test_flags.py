"""Flags and config files: what they mean and what they refuse."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from localkmeans_spark import LocalKMeans, params
from localkmeans_spark.cli.commands import application
from localkmeans_spark.cli.flags import (
    Options,
    command_line,
    flag_of,
    in_words_of_flags,
    options_of,
)
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.param_types import one_of

NEEDED = ["--input", "a.csv", "--k", "3", "--output", "out"]
REPOSITORY = Path(__file__).resolve().parents[2]
# Params of the estimator that the command settles itself, or that no one needs there.
NO_FLAGS = {
    "predictionCol", "distanceCol", "distancesCol", "secondCol", "marginCol", "initialCenters",
    "solver", "maxBlockSizeInMB", "verbose",
}  # fmt: skip


def parse(words: list[str], command: str = "fit") -> Options:
    found = application().commands[command]
    return options_of(found.make_context(command, list(words)), "input")


def config(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "job.toml"
    path.write_text(text)
    return ["--config", str(path)]


def test_only_what_is_given_is_set() -> None:
    assert parse(NEEDED).params == {"k": 3}


def test_every_parameter_has_a_flag() -> None:
    flags = {word for option in application().commands["fit"].params for word in option.opts}
    assert {flag_of(name) for name in params.PARAMETERS if name not in NO_FLAGS} <= flags
    old = (
        "--input --format --features-col --feature-cols --id-cols --handle-invalid --weight-col "
        "--label-col --k --local-steps --max-iter --tol --seed --init --n-init --empty-clusters "
        "--distance-measure --partitions --dtype --safeguard --output --overwrite --master --debug "
        "--report --checkpoint-dir --config"
    )
    assert set(old.split()) <= flags


def test_a_new_parameter_needs_no_line_here(monkeypatch: pytest.MonkeyPatch) -> None:
    new = params.Parameter("a", "'a' or 'b'", params.as_text, one_of("a", "b"), "A or b.", "Use a.")
    monkeypatch.setitem(params.PARAMETERS, "newRule", new)
    assert parse([*NEEDED, "--new-rule", "b"]).params == {"k": 3, "newRule": "b"}
    with pytest.raises(InvalidInputError, match="fit: --new-rule must be 'a' or 'b'; got 'c'"):
        parse([*NEEDED, "--new-rule", "c"])


def test_every_flag_reaches_the_estimator() -> None:
    words = (
        "--local-steps 7 --max-iter 11 --tol 0.5 --seed 9 --init random --partitions 13 "
        "--dtype float64 --no-safeguard --handle-invalid skip --weight-col w --n-init 6 "
        "--empty-clusters reseed --checkpoint-dir c --distance-measure cosine --init-steps 3 "
        "--canonical-order"
    )
    expected = {
        "k": 3, "localSteps": 7, "maxIter": 11, "tol": 0.5, "seed": 9, "initMode": "random",
        "numPartitions": 13, "dtype": "float64", "safeguard": False, "handleInvalid": "skip",
        "weightCol": "w", "nInit": 6, "emptyClusters": "reseed", "checkpointDir": "c",
        "distanceMeasure": "cosine", "initSteps": 3, "canonicalOrder": True,
    }  # fmt: skip
    options = parse([*NEEDED, *words.split()])
    assert options.params == expected
    made = LocalKMeans(**options.params)
    assert {name: made.getOrDefault(name) for name in expected} == expected


def test_names_with_commas() -> None:
    assert parse([*NEEDED, "--feature-cols", 'a, "b,c",d']).feature_cols == ("a", "b,c", "d")


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    words = config(
        tmp_path,
        'input = "x.csv"\nk = 5\nlocal-steps = 2\nmax_iter = 9\nsafeguard = false\n'
        'overwrite = true\nfeature-cols = ["a", "b,c"]\noutput = "o"\n',
    )
    found = parse([*words, "--k", "8", "--safeguard"])
    assert found.params == {"k": 8, "localSteps": 2, "maxIter": 9, "safeguard": True}
    assert (found.input, found.output, found.overwrite) == ("x.csv", "o", True)
    assert found.feature_cols == ("a", "b,c")
    found = parse([*words, "--features-col", "v"])  # replaces the file's whole choice
    assert (found.features_col, found.feature_cols) == ("v", ())


def test_the_repositorys_config_file_is_valid(tmp_path: Path) -> None:
    lines = (REPOSITORY / "conf" / "fit.toml").read_text().splitlines()
    assert parse(config(tmp_path, "\n".join(lines))).params["k"] == 10
    # What is left out is right, too; of the two ways to name features one may be given.
    lines = [line.removeprefix("# ") if " = " in line else line for line in lines]
    lines = [line for line in lines if not line.startswith("features-col")]
    found = parse(config(tmp_path, "\n".join(lines)))
    assert (found.feature_cols, found.tol) == (("age", "income"), 1e-4)


def test_the_command_line_repeats_the_run() -> None:
    words = shlex.split(
        "--input 'my data.csv' --k 3 --output o --feature-cols 'a,\"b,c\"' --no-safeguard --tol 0.5"
    )
    again = parse(shlex.split(command_line(parse(words), seed=7))[2:])
    assert again == parse([*words, "--seed", "7"])


def test_help_shows_the_estimators_defaults(run) -> None:
    told = run("fit", "--help")
    text = " ".join(" ".join(told.lines).split())  # lines break where the window ends
    assert told.status == 0
    assert f'or "auto". (default: {LocalKMeans().getLocalSteps()})' in text
    assert "localkmeans fit --input customers.csv" in text
    for words in ([], ["--help"]):
        assert {"fit", "predict", "sweep", "describe", "diagnose"} <= {
            line.split()[0] for line in run(*words).lines if line
        }


def test_words_of_the_library_become_flags() -> None:
    text = "parameter 'k' or 'x' (featuresCol): set handleInvalid='skip', dtype='float64'; k"
    told = "--k or 'x' (--features-col): set --handle-invalid='skip', --dtype='float64'; k"
    assert in_words_of_flags(text) == told


def test_usage_is_told_before_anything_slow_is_imported() -> None:
    code = """if True:
        import contextlib, sys
        for name in ("pyspark", "pandas", "scipy", "pyarrow"):
            sys.modules[name] = None
        from localkmeans_spark.cli.main import main, script
        for words in (["--help"], ["fit", "--help"], ["fit"], ["diagnose", "--xyzzy"]):
            with contextlib.suppress(SystemExit):
                main(words)
        for name in ("fit", "predict", "sweep", "describe", "diagnose"):
            script(name, ["--help"])"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stderr.count("error: ") == 2
    assert told.stdout.count("Usage: python jobs/") == 5
