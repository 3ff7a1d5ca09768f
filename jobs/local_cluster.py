"""A real Spark cluster on this machine: one master and some workers, all on loopback.

Runs a command against it and takes everything down again, whatever happens:

    python jobs/local_cluster.py --workers 2 -- spark-submit --master {master} jobs/fit.py ...

``{master}`` in the command, and MASTER in its environment, are the master's URL.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.append(str(Path(__file__).resolve().parents[1]))

import click
from click.exceptions import Exit

from localkmeans_spark.cli.messages import user_errors
from localkmeans_spark.cli.session import ensure_java
from localkmeans_spark.errors import invalid

_START_SECONDS, _STOP_SECONDS = 90, 10
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


class LocalCluster:
    """A standalone cluster of the installed PySpark, as a context manager.

    Each worker offers ``cores`` and ``memory``; an executor takes ``spark.executor.memory`` of it,
    1g unless the application says otherwise. ``worker_python`` is the interpreter of the Python
    workers, None for the one that runs this. ``processes`` are the master, then the workers.
    """

    def __init__(
        self, workers: int = 2, cores: int = 1, memory: str = "2g", worker_python: str | None = None
    ) -> None:
        self.worker_python = worker_python
        self.master_url = ""
        self.processes: list[subprocess.Popen[bytes]] = []
        self._size = ["--cores", str(cores), "--memory", memory]
        self._count = workers
        self._folder = Path("/nowhere")
        self._stack = ExitStack()

    def __enter__(self) -> LocalCluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def environment(self) -> dict[str, str]:
        """Return the environment for a driver of this cluster, ``spark-submit`` on its PATH."""
        env = dict(os.environ)
        bins = [str(_spark_home() / "bin"), str(Path(sys.executable).parent), env.get("PATH", "")]
        env.update(MASTER=self.master_url, SPARK_HOME=str(_spark_home()), PATH=":".join(bins))
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
        # The driver tells the workers which interpreter to start.
        env["PYSPARK_PYTHON"] = self.worker_python or env.get("PYSPARK_PYTHON") or sys.executable
        env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        return env

    def stop(self) -> None:
        """End every process of the cluster and remove its files; more than once does no harm."""
        held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
        try:
            for process in reversed(self.processes):
                end_group(process, signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            for process in reversed(self.processes):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
                end_group(process, signal.SIGKILL)
                process.wait()
            self._stack.close()
            self.processes = []
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self) -> None:
        ensure_java()
        folder = tempfile.TemporaryDirectory(
            prefix="localkmeans-cluster-", ignore_cleanup_errors=True
        )
        self._folder = Path(self._stack.enter_context(folder))
        (self._folder / "conf").mkdir()  # empty: the user's own Spark settings stay out of this
        free = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._daemon("master", "master.Master", *free)
        self.master_url = self._wait_for(_STARTED, "master", 0)[1]
        for number in range(self._count):
            place = ["--work-dir", str(self._folder / f"work-{number}")]
            words = [*free, *self._size, *place, self.master_url]
            self._daemon(f"worker-{number}", "worker.Worker", *words)
        for number in range(self._count):
            self._wait_for(_REGISTERED, f"worker-{number}", 1 + number)

    def _daemon(self, name: str, main_class: str, *words: str) -> None:
        """Start a process of the cluster, in a process group of its own with all it starts."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env.update(
            SPARK_HOME=str(_spark_home()),
            SPARK_CONF_DIR=str(self._folder / "conf"),
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_LOCAL_DIRS=str(self._folder / f"local-{name}"),
            SPARK_DAEMON_MEMORY="512m",
            SPARK_DAEMON_JAVA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts sooner
            SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false",
        )
        start = [str(_spark_home() / "bin/spark-class"), f"org.apache.spark.deploy.{main_class}"]
        with (self._folder / f"{name}.log").open("wb") as log:
            streams: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": subprocess.STDOUT,
            }
            process = subprocess.Popen([*start, *words], env=env, start_new_session=True, **streams)
        self.processes.append(process)

    def _wait_for(self, line: re.Pattern[str], name: str, place: int) -> re.Match[str]:
        """Wait until ``line`` stands in the log of ``name``."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            ended = self.processes[place].poll() is not None
            log = (self._folder / f"{name}.log").read_text(errors="replace")
            found = line.search(log)
            if found:
                return found
            if ended or time.monotonic() > deadline:
                last = (log.strip().splitlines() or ["nothing"])[-1]
                raise RuntimeError(f"the cluster's {name} did not start; its log ends: {last}")
            time.sleep(0.1)


def _spark_home() -> Path:
    """Return the installed PySpark's own directory, whatever SPARK_HOME says."""
    import pyspark

    return Path(pyspark.__file__).parent


def end_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a process started with ``start_new_session`` and to all of its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def run_group(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command, end whatever of it is left, and return its status as shells report it."""
    process = subprocess.Popen(words, env=env, start_new_session=True)
    try:
        status = process.wait()
    except BaseException:
        end_group(process, signal.SIGINT)  # Ctrl-C reaches it through this process
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        raise
    finally:
        end_group(process, signal.SIGKILL)
        process.wait()
    return status if status >= 0 else 128 - status


@click.command(help=__doc__.split("\n")[0])
@click.option("--workers", type=click.IntRange(1), default=2, help="Worker processes.")
@click.option("--cores", type=click.IntRange(1), default=1, help="Cores of a worker.")
@click.option("--memory", default="2g", help="Memory of a worker.")
@click.option("--worker-python", metavar="PATH", help="Interpreter of Python workers.")
@click.argument("command", nargs=-1, required=True)
def _command(
    workers: int, cores: int, memory: str, worker_python: str | None, command: tuple[str, ...]
) -> int:
    cluster = LocalCluster(workers, cores, memory, worker_python)
    if shutil.which(command[0], path=cluster.environment()["PATH"]) is None:
        rule, fix = "a program that can be run", "Name a file that is there and may be run."
        raise invalid("local_cluster", "the command", rule, command[0], fix)
    with cluster:
        words = [word.replace("{master}", cluster.master_url) for word in command]
        return run_group(words, cluster.environment())


def main(argv: Sequence[str] | None = None) -> int:
    """Start a cluster, run the command, take the cluster down; return the command's status."""
    with user_errors("local_cluster"):
        words = list(sys.argv[1:] if argv is None else argv)
        with suppress(Exit), _command.make_context("local_cluster", words) as context:
            return int(_command.invoke(context))
    return 0


if __name__ == "__main__":
    sys.exit(main())
