"""The standalone cluster on loopback: it works, it can be hurt, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from jobs.local_cluster import LocalCluster, end_group, main
from localkmeans_spark import LocalKMeans
from localkmeans_spark.cli.session import build_zip
from tests.connect_server import connect_server
from tests.fast_java import OPTIONS
from tests.signals import heed_all_signals

REPOSITORY = Path(__file__).resolve().parents[2]
# A driver on the cluster; its executors start fast, too.
SUBMIT = ["spark-submit", "--conf", f"spark.executor.extraJavaOptions={OPTIONS}", "--master"]
COMMAND = [sys.executable, str(REPOSITORY / "jobs" / "local_cluster.py")]

# Eight tasks that say where they ran.
JOB = """
import os, sys, time
from pyspark.sql import SparkSession

def place(number):
    time.sleep(0.3)
    import localkmeans_spark.errors
    return os.getppid(), sys.flags.no_site, localkmeans_spark.errors.__file__

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize(range(2), 2).count()
print("STARTED", flush=True)
found = spark.sparkContext.parallelize(range(8), 8).map(place).collect()
print("RAN", len(found), len({pid for pid, _, _ in found}), {flag for _, flag, _ in found})
print("FROM", *{path for _, _, path in found})
spark.stop()
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory) -> str:
    """An interpreter with NumPy and the like, which lacks this package.

    Without the site module, an editable install is not found.
    """
    libraries = Path(np.__file__).parents[1]
    script = tmp_path_factory.mktemp("bare") / "python"
    script.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S "$@"\n'
    )  # fmt: skip
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="module")
def cluster(bare_python) -> Iterator[LocalCluster]:
    with LocalCluster(workers=2, worker_python=bare_python) as running:
        yield running


@pytest.fixture
def submit(cluster, tmp_path):
    """Return a function that runs :data:`JOB` on the cluster by spark-submit."""

    def run(*flags: str) -> subprocess.Popen[str]:
        script = tmp_path / "job.py"
        script.write_text(JOB)
        env = cluster.environment()
        env.pop("PYTHONPATH", None)
        words = [*SUBMIT, cluster.master_url, *flags, str(script)]
        with (tmp_path / "stderr").open("w") as log:  # a pipe could fill up unread
            return subprocess.Popen(
                words, env=env, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=log
            )

    return run


def output_of(process: subprocess.Popen[str], folder: Path) -> str:
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0, out + (folder / "stderr").read_text()
    return out


def test_zip_is_enough_for_workers_that_lack_the_package(submit, tmp_path):
    package = build_zip(tmp_path / "package.zip")
    out = output_of(submit("--py-files", str(package)), tmp_path)
    assert "RAN 8 2 {1}" in out  # on both workers, in the interpreter asked for
    assert "/package.zip/localkmeans_spark/errors.py" in out


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    x, _ = load_digits(return_X_y=True)
    pd.DataFrame({"features": list(x)}).to_parquet(folder / "digits.parquet")
    return folder


def fit_digits(
    folder: Path, name: str, start: list[str], env: dict[str, str], *flags: str
) -> tuple[float, bytes]:
    """Run jobs/fit.py; return the cost that it tells and the bytes of the saved centers."""
    words = [*start, str(REPOSITORY / "jobs" / "fit.py"), "--input", str(folder / "digits.parquet")]
    words += ["--k", "10", "--partitions", "12", "--seed", "3", "--no-report"]
    words += ["--output", str(folder / name), *flags]
    done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["cost"], saved_values(folder / name)


def saved_values(folder: Path) -> bytes:
    stored = pd.read_parquet(folder / "model" / "data").sort_values(["name", "row"])
    return np.stack(stored["values"].to_list()).tobytes()


@pytest.fixture(scope="module")
def local_fit(spark, digits) -> tuple[float, bytes]:
    """The same of a fit without a cluster."""
    rows = spark.read.parquet(str(digits / "digits.parquet"))
    model = LocalKMeans(k=10, numPartitions=12, seed=3).fit(rows)
    model.save(str(digits / "local" / "model"))
    return model.summary.trainingCost, saved_values(digits / "local")


def without_package(cluster: LocalCluster) -> dict[str, str]:
    environment = cluster.environment()
    environment.pop("PYTHONPATH", None)
    return environment


def test_fit_gives_the_same_bits_as_local(cluster, digits, local_fit):
    package = build_zip(digits / "package.zip")
    submit = [*SUBMIT, cluster.master_url, "--py-files", str(package)]
    found = fit_digits(digits, "cluster", submit, without_package(cluster))
    assert found == local_fit


def test_fit_through_a_server_of_spark_connect_gives_the_same_bits(
    cluster, digits, local_fit, tmp_path
):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    submit = [*SUBMIT, cluster.master_url]
    with connect_server(submit, without_package(cluster), tmp_path) as address:  # nor its workers
        found = fit_digits(digits, "remote", [sys.executable], env, "--master", address)
    assert found == local_fit


def test_job_survives_killed_executors(cluster, submit, tmp_path):
    process = submit("--py-files", str(build_zip(tmp_path / "package.zip")))
    while process.stdout.readline() != "STARTED\n":
        assert process.poll() is None
    words = ["ps", "-A", "-o", "pid=,ppid=,stat="]
    for line in subprocess.check_output(words, text=True).splitlines():
        pid, parent, state = line.split()
        # spark-class leaves an ended child that nobody asked after (Z)
        if int(parent) == cluster.processes[1].pid and state[0] != "Z":
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    assert "RAN 8" in output_of(process, tmp_path)
    log = (tmp_path / "stderr").read_text()
    assert "Lost executor" in log, "killed too late to matter"


def test_killed_worker_is_gone_and_the_other_works_on(cluster, submit, tmp_path):
    _, first, second = cluster.processes
    end_group(first, signal.SIGKILL)  # and its executors, as if its machine were lost
    first.wait(10)
    assert second.poll() is None
    package = build_zip(tmp_path / "package.zip")
    out = output_of(submit("--py-files", str(package)), tmp_path)
    assert "RAN 8 1 {1}" in out


@pytest.mark.parametrize("status", [0, 7])
def test_command_line_gives_the_commands_status_and_leaves_nothing(status, tmp_path):
    check = (
        f'test "$MASTER" = "$1" && ls {tmp_path}/localkmeans-cluster-*/master.log; exit {status}'
    )
    run = subprocess.run(
        [*COMMAND, "--workers", "1", "--", "sh", "-c", check, "sh", "{master}"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == status, run.stderr
    assert "master.log" in run.stdout
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_leaves_nothing(number, tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "--workers", "1", "--", "sh", "-c", f"touch {tmp_path}/up; exec sleep 300"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_all_signals,  # noqa: PLW1509 - takes no lock
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "up").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (tmp_path / "up").unlink()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert_nothing_left(tmp_path)


def assert_nothing_left(folder: Path) -> None:
    """Check that no file and no process of a cluster in ``folder`` is left."""
    assert not list(folder.glob("localkmeans-cluster-*"))
    shown = subprocess.run(  # -ww: whole command lines, however narrow the terminal
        ["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True
    ).stdout
    assert str(folder) not in shown


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--workers", "0", "--", "true"], "Invalid value for '--workers': 0 is not in the range"),
        ([], "Missing argument"),
        (["--", "/no/such/program"], "the command must be a program that can be run; got"),
    ],
)
def test_bad_command_line_is_one_line(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    err = capsys.readouterr().err
    assert caught.value.code == 2
    assert err.startswith(f"local_cluster: error: {line}")
    assert err.count("\n") == 1


def test_cluster_that_cannot_start_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr("jobs.local_cluster._spark_home", lambda: tmp_path)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spark-class"
    script.write_text("#!/bin/sh\necho no room; exit 1\n")
    script.chmod(0o755)
    with pytest.raises(RuntimeError, match="master did not start; its log ends: no room"):
        LocalCluster().__enter__()
