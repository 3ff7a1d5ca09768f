"""Command lines and config files: what they mean and what they refuse."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from jobs.arguments import parse_fit, parse_predict
from jobs.estimator_flags import PARAMS, make_estimator
from jobs.options import FitOptions, command_line
from localkmeans_spark import LocalKMeans
from localkmeans_spark.errors import InvalidInputError

NEEDED = ["--input", "a.csv", "--k", "3", "--output", "out"]
REPOSITORY = Path(__file__).resolve().parents[2]


def config(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "job.toml"
    path.write_text(text)
    return ["--config", str(path)]


def test_only_what_is_given_is_set() -> None:
    assert parse_fit(NEEDED) == FitOptions(input="a.csv", k=3, output="out")


def test_defaults_are_the_estimators() -> None:
    made = make_estimator("fit", parse_fit(NEEDED))
    plain = LocalKMeans()
    for param in set(PARAMS.values()) - {"k"}:
        assert made.isSet(param) == (param == "safeguard")
        if plain.isDefined(param):
            assert made.getOrDefault(param) == plain.getOrDefault(param)


def test_every_flag_reaches_the_estimator() -> None:
    words = (
        "--local-steps 7 --max-iter 11 --tol 0.5 --seed 9 --init random --partitions 13 "
        "--dtype float64 --no-safeguard --handle-invalid skip --weight-col w "
        "--n-init 6 --empty-clusters reseed --checkpoint-dir c "
        "--distance-measure cosine"
    )
    made = make_estimator("fit", parse_fit([*NEEDED, *words.split()]))
    found = {param: made.getOrDefault(param) for param in PARAMS.values()}
    assert found == {
        "k": 3, "localSteps": 7, "maxIter": 11, "tol": 0.5, "seed": 9, "initMode": "random",
        "numPartitions": 13, "dtype": "float64", "safeguard": False, "handleInvalid": "skip",
        "weightCol": "w", "nInit": 6, "emptyClusters": "reseed", "checkpointDir": "c",
        "distanceMeasure": "cosine",
    }  # fmt: skip


def test_names_with_commas() -> None:
    assert parse_fit([*NEEDED, "--feature-cols", 'a, "b,c",d']).feature_cols == ("a", "b,c", "d")


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    words = config(
        tmp_path,
        'input = "x.csv"\nk = 5\nlocal-steps = 2\nmax_iter = 9\nsafeguard = false\n'
        'overwrite = true\nfeature-cols = ["a", "b,c"]\noutput = "o"\n',
    )
    options = parse_fit([*words, "--k", "8", "--safeguard"])
    assert options == FitOptions(
        input="x.csv", k=8, local_steps=2, max_iter=9, safeguard=True, overwrite=True,
        feature_cols=("a", "b,c"), output="o", config=words[1],
    )  # fmt: skip


def test_a_flag_replaces_the_files_choice_of_features(tmp_path: Path) -> None:
    words = config(tmp_path, 'feature-cols = ["a"]')
    options = parse_fit([*NEEDED, *words, "--features-col", "v"])
    assert (options.features_col, options.feature_cols) == ("v", ())


def test_the_repositorys_config_file_is_valid() -> None:
    options = parse_fit(["--config", str(REPOSITORY / "conf" / "fit.toml")])
    make_estimator("fit", options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("local-step = 5", "Did you mean 'local-steps'"),
        ("xyzzy = 5", "key 'xyzzy'"),
        ('k = "three"', "--k must be a whole number; got 'three'"),
        ('safeguard = "no"', "must be true or false; got 'no'"),
        ("k = true", "must be a number, a string or a list of names; got True"),
        ("[fit]\nk = 3", "key 'fit'"),
        ("k = = 3", "must be a TOML file"),
        ('config = "other.toml"', "key 'config'"),
        ('format = "xml"', "invalid choice: 'xml'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, told: str) -> None:
    words = config(tmp_path, text)
    with pytest.raises(InvalidInputError) as error:
        parse_fit([*NEEDED[:2], *words, "--output", "o"])
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--input and --k and --output must be given"),
        (["--k", "2.5"], "--k must be a whole number; got '2.5'"),
        (["--tol", "small"], "--tol must be a number; got 'small'"),
        (["--features-col", "a", "--feature-cols", "b"], "exclude each other"),
        (["--feature-cols", "a,,b"], "names separated by commas"),
        (["--feature-cols", "a,b,a"], "must not repeat a name"),
        (["--local", "5"], "unrecognized arguments: --local"),
        (["--config", "/nowhere/job.toml"], "'/nowhere/job.toml'. No such file"),
    ],
)
def test_bad_command_lines(words: list[str], told: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_fit([*(NEEDED if words else []), *words])
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--k 0", "fit: --k must be an integer >= 1; got 0"),
        ("--local-steps 0", 'fit: --local-steps must be an integer >= 1, or "auto"; got 0'),
        ("--local-steps some", "must be a whole number"),
        ("--tol nan", "fit: --tol must be"),
        ("--init best", "fit: --init must be"),
        ("--partitions -1", "fit: --partitions must be"),
        ("--handle-invalid drop", "fit: --handle-invalid must be"),
        ("--dtype float16", "fit: --dtype must be"),
    ],
)
def test_values_out_of_range_are_named_by_flag(words: str, told: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        make_estimator("fit", parse_fit([*NEEDED, *words.split()]))
    assert told in str(error.value)


def test_the_command_line_repeats_the_run() -> None:
    words = shlex.split(
        "--input 'my data.csv' --k 3 --output o --feature-cols 'a,\"b,c\"' --no-safeguard --tol 0.5"
    )
    options = parse_fit(words)
    again = parse_fit(shlex.split(command_line(options, seed=7))[2:])
    assert again == parse_fit([*words, "--seed", "7"])


def test_help_shows_the_estimators_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        parse_fit(["--help"])
    assert leave.value.code == 0
    text = " ".join(capsys.readouterr().out.split())  # lines break where the window ends
    assert f"plain Lloyd (default: {LocalKMeans().getLocalSteps()})" in text
    assert "python jobs/fit.py --input customers.csv" in text


def test_predict_needs_a_model() -> None:
    with pytest.raises(InvalidInputError, match="--model must be given"):
        parse_predict(["--input", "a", "--output", "b"])
