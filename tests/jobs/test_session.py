"""The session under python and under spark-submit, and how a job ends when something is wrong."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from jobs import session
from jobs.failures import user_errors
from jobs.session import FAST_SETTINGS, open_session
from localkmeans_spark.errors import invalid

REPOSITORY = Path(__file__).resolve().parents[2]
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"

# Prints what the session and a worker look like, then fails in the way it is told to.
JOB = """
import json, sys
from jobs.session import open_session, user_errors
from localkmeans_spark.errors import invalid

def worker(_):
    import sys
    import localkmeans_spark.errors
    return sys.executable, localkmeans_spark.errors.__file__

with user_errors():
    with open_session("job", conf=json.loads(sys.argv[1])) as spark:
        seen = dict(spark.sparkContext.getConf().getAll())
        seen["arrow"] = spark.conf.get("spark.sql.execution.arrow.pyspark.enabled")
        seen["worker"] = spark.sparkContext.parallelize([0], 1).map(worker).first()
        print(json.dumps(seen))
        if sys.argv[2] == "invalid":
            raise invalid("LocalKMeans", "parameter 'k'", "an integer >= 1", 0, "Give more.")
        if sys.argv[2] == "bug":
            1 / 0
"""


@pytest.fixture
def run_job(tmp_path):
    """Return a function that runs :data:`JOB` with a command and more environment."""

    def run(command, conf=None, end="well", **environment):
        script = tmp_path / "job.py"
        script.write_text(JOB)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env.update(PYTHONPATH=str(REPOSITORY), **environment)
        words = [*command, str(script), json.dumps(conf or {}), end]
        result = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
        shown = [line for line in result.stdout.splitlines() if line.startswith("{")]
        return result, json.loads(shown[0]) if shown else {}

    return run


class TestStartedByPython:
    def test_finds_its_settings_and_is_quiet(self, run_job):
        conf = {"spark.master": "local[1]", "spark.buffer.size": "70000"}
        result, seen = run_job(
            [sys.executable], conf, JAVA_TOOL_OPTIONS="-Dx=1", SPARK_DRIVER_MEMORY="1g"
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert seen["spark.master"] == "local[1]"
        assert seen["spark.buffer.size"] == "70000"  # the caller's word counts
        assert seen["spark.python.unix.domain.socket.enabled"] == "true"
        assert seen["arrow"] == "true"
        assert seen["spark.driver.memory"] == "1g"  # SPARK_DRIVER_MEMORY counts
        assert seen["worker"] == [
            sys.executable,
            str(REPOSITORY / "localkmeans_spark" / "errors.py"),
        ]

    def test_user_error_is_one_line_and_status_2(self, run_job):
        conf = {"spark.driver.memory": "1g"}
        result, seen = run_job([sys.executable], conf, end="invalid")
        assert seen["spark.master"] == "local[*]"
        assert result.returncode == 2
        assert result.stderr == (
            "job: error: LocalKMeans: parameter 'k' must be an integer >= 1; got 0. Give more.\n"
        )


class TestStartedBySparkSubmit:
    # spark-submit copies both of a Python job's streams to its own stdout.

    def test_its_settings_stay_and_the_rest_is_added(self, run_job):
        flags = ["--master", "local[1]", "--conf", "spark.buffer.size=70000"]
        conf = {"spark.master": "local[2]", "spark.buffer.size": "80000", "spark.x": "added"}
        result, seen = run_job(
            [str(SPARK_SUBMIT), *flags], conf, PYSPARK_DRIVER_PYTHON=sys.executable,
            PYSPARK_PYTHON=sys.executable, end="invalid",
        )  # fmt: skip
        assert result.returncode == 2, result.stderr
        assert result.stdout.splitlines()[-1].startswith("job: error: LocalKMeans")
        assert "Traceback" not in result.stdout + result.stderr
        assert seen["spark.master"] == "local[1]"
        assert seen["spark.buffer.size"] == "70000"
        assert seen["spark.x"] == "added"
        assert seen["arrow"] == "true"
        assert seen["spark.python.unix.domain.socket.enabled"] == "true"

    def test_unexpected_error_is_status_1(self, run_job):
        result, _ = run_job(
            [str(SPARK_SUBMIT), "--master", "local[1]"], PYSPARK_DRIVER_PYTHON=sys.executable,
            PYSPARK_PYTHON=sys.executable, LOCALKMEANS_DEBUG="1", end="bug",
        )  # fmt: skip
        assert result.returncode == 1
        assert "Traceback (most recent call last)" in result.stdout
        last = result.stdout.splitlines()[-1]
        assert last.startswith("job: error: ZeroDivisionError: division by zero (unexpected")


def test_open_session_is_lent_and_stays_open(spark):
    with open_session("another", master="local[7]") as lent:
        assert lent is spark
    assert spark.range(3).count() == 3


class TestOwnSparkSettings:
    def test_users_defaults_and_log_settings_win(self, monkeypatch, tmp_path):
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        assert "spark.driver.defaultJavaOptions" in session._launch_defaults("local", quiet=True)
        (tmp_path / "log4j2.properties").write_text("")
        (tmp_path / "spark-defaults.conf").write_text("# x\nspark.a 1\nspark.b=2\n\n = \n")
        defaults = session._launch_defaults("local", quiet=True)
        assert "spark.driver.defaultJavaOptions" not in defaults
        assert {"spark.a", "spark.b"} <= session._spark_defaults()

    def test_file_for_spark_submit_says_the_same(self):
        lines = (REPOSITORY / "conf" / "spark-defaults.conf").read_text().splitlines()
        pairs = dict(line.split() for line in lines if line and not line.startswith("#"))
        assert pairs == FAST_SETTINGS


def end_of(capsys, error: BaseException | None = None, act=None, **options) -> tuple[int, str]:
    """Return exit status and stderr of a job that raises ``error`` or does ``act``."""

    @user_errors("fit.py", **options)
    def job() -> None:
        if act is not None:
            act()
        assert error is not None
        raise error

    with pytest.raises(SystemExit) as caught:
        job()
    return caught.value.code, capsys.readouterr().err


class TestUserErrors:
    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (invalid("fit", "--k", "given", None, "Do."), "--k must be given; got None. Do."),
            (
                invalid("LocalKMeans", "k", "1", 0, "Do."),
                "LocalKMeans: k must be 1; got 0. Do.",
            ),
            (argparse.ArgumentTypeError("two\nlines"), "two lines"),
            (FileNotFoundError(2, "No such file or directory", "a b"),
             "a b: No such file or directory"),
        ],
    )  # fmt: skip
    def test_mendable_is_one_line_and_status_2(self, capsys, error, line):
        assert end_of(capsys, error) == (2, f"fit: error: {line}\n")

    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
            (ValueError("a\nb"), "ValueError: a"),
            (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        ],
    )
    def test_unexpected_is_one_line_and_status_1(self, capsys, error, line):
        expected = f"fit: error: {line} (unexpected; --debug shows where)\n"
        assert end_of(capsys, error) == (1, expected)

    def test_debug_adds_the_trace(self, capsys):
        status, err = end_of(capsys, KeyError("k"), debug=True)
        assert status == 1
        assert err.startswith("Traceback (most recent call last)")
        assert err.splitlines()[-1].startswith("fit: error: KeyError: 'k'")

    def test_interruption_has_the_shells_status(self, capsys):
        assert end_of(capsys, KeyboardInterrupt()) == (130, "fit: error: interrupted\n")

    def test_exit_asked_for_passes_through(self):
        with pytest.raises(SystemExit) as caught, user_errors("fit.py"):
            raise SystemExit(5)
        assert caught.value.code == 5

    def test_missing_path(self, capsys, spark, tmp_path):
        status, err = end_of(capsys, act=lambda: spark.read.parquet(f"{tmp_path}/no.parquet"))
        assert status == 2
        assert err.rstrip(".\n") == (f"fit: error: Path does not exist: file:{tmp_path}/no.parquet")

    def test_missing_column(self, capfd, spark):
        status, err = end_of(capfd, act=lambda: spark.range(3).select("nope"))
        assert status == 2
        assert err.count("\n") == 1
        assert "`nope` cannot be resolved" in err

    def test_damaged_file_found_out_while_reading(self, capsys, spark, tmp_path):
        (tmp_path / "x.parquet").write_bytes(b"not parquet" * 9)
        status, err = end_of(capsys, act=lambda: spark.read.parquet(str(tmp_path)).count())
        assert status == 2
        assert err.count("\n") == 1
        assert "x.parquet" in err
        assert "org.apache" not in err

    def test_error_in_a_worker_is_named(self, capsys, spark):
        rdd = spark.sparkContext.parallelize([0], 1)
        status, err = end_of(capsys, act=lambda: rdd.map(lambda x: 1 // x).collect())
        assert status == 1
        assert err.count("\n") == 1
        assert "ZeroDivisionError: " in err
