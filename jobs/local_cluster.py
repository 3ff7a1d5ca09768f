"""A real Spark cluster on this machine: one master and some workers, all on loopback.

Runs a command against it and takes everything down again, whatever happens:

    python jobs/local_cluster.py --workers 2 -- spark-submit --master {master} jobs/fit.py ...

``{master}`` in the command, and MASTER in its environment, are the master's URL.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from jobs.failures import user_errors
from jobs.java import ensure_java
from jobs.processes import children_of, end_group, run_group, signals_held
from localkmeans_spark.errors import invalid

_START_SECONDS = 90
_STOP_SECONDS = 10
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


class LocalCluster:
    """A standalone cluster of the installed PySpark, as a context manager.

    Parameters
    ----------
    workers : int
        Worker processes; each offers ``cores`` and ``memory`` and runs its executors.
    cores : int
        Cores of each worker.
    memory : str
        Memory of each worker, as Spark writes it (``"2g"``). An executor takes
        ``spark.executor.memory`` of it, 1g unless the application says otherwise.
    worker_python : str or None
        Interpreter of the Python workers; None is the one that runs this.

    Attributes
    ----------
    master_url : str
        ``spark://127.0.0.1:PORT``; the port is a free one.
    """

    def __init__(
        self,
        workers: int = 2,
        cores: int = 1,
        memory: str = "2g",
        worker_python: str | None = None,
    ) -> None:
        self.cores = cores
        self.memory = memory
        self.worker_python = worker_python
        self.master_url = ""
        self._count = workers
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> LocalCluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers, in the order of their numbers."""
        return [worker.pid for worker in self._workers]

    def environment(self) -> dict[str, str]:
        """Return the environment for a driver of this cluster, ``spark-submit`` on its PATH."""
        env = dict(os.environ)
        bins = [str(_spark_home() / "bin"), str(Path(sys.executable).parent), env.get("PATH", "")]
        env.update(
            MASTER=self.master_url,
            SPARK_HOME=str(_spark_home()),
            SPARK_LOCAL_IP="127.0.0.1",
            PATH=os.pathsep.join(bins),
        )
        # The driver tells the workers which interpreter to start.
        env["PYSPARK_PYTHON"] = self.worker_python or env.get("PYSPARK_PYTHON") or sys.executable
        env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        return env

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors at once, as if its machine were lost."""
        end_group(self._workers[number], signal.SIGKILL)

    def kill_executors(self, number: int) -> None:
        """Kill a worker's executors; the worker lives on and starts new ones."""
        for pid in children_of(self._workers[number].pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End every process of the cluster and remove its files; more than once does no harm."""
        running = [*self._workers, *([self._master] if self._master else [])]
        with signals_held():
            for process in running:
                end_group(process, signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
                end_group(process, signal.SIGKILL)
                process.wait()
            if self._folder is not None:
                self._folder.cleanup()
            self._master, self._workers, self._folder = None, [], None

    def _start(self) -> None:
        ensure_java()
        self._folder = tempfile.TemporaryDirectory(
            prefix="localkmeans-cluster-", ignore_cleanup_errors=True
        )
        free = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._master = self._daemon("master", "master.Master", *free)
        self.master_url = self._wait_for(_STARTED, "master", self._master).group(1)
        for number in range(self._count):
            size = ["--cores", str(self.cores), "--memory", self.memory]
            place = ["--work-dir", str(self._path(f"work-{number}"))]
            words = [*free, *size, *place, self.master_url]
            self._workers.append(self._daemon(f"worker-{number}", "worker.Worker", *words))
        for number, worker in enumerate(self._workers):
            self._wait_for(_REGISTERED, f"worker-{number}", worker)

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / name

    def _daemon(self, name: str, main_class: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a process of the cluster, in a process group of its own with all it starts."""
        settings = self._path("conf")
        settings.mkdir(exist_ok=True)  # empty: the user's own Spark settings stay out of this
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env.update(
            SPARK_HOME=str(_spark_home()),
            SPARK_CONF_DIR=str(settings),
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_LOCAL_DIRS=str(self._path(f"local-{name}")),
            SPARK_DAEMON_MEMORY="512m",
            SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false",
        )
        command = [str(_spark_home() / "bin/spark-class"), f"org.apache.spark.deploy.{main_class}"]
        with self._path(f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, *words],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_for(
        self, line: re.Pattern[str], name: str, process: subprocess.Popen[bytes]
    ) -> re.Match[str]:
        """Wait until ``line`` stands in the log of ``name``."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            ended = process.poll() is not None
            log = self._path(f"{name}.log").read_text(errors="replace")
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


def run_command(cluster: LocalCluster, command: Sequence[str]) -> int:
    """Run ``command`` with ``{master}`` filled in and return its exit status."""
    words = [word.replace("{master}", cluster.master_url) for word in command]
    try:
        return run_group(words, cluster.environment())
    except OSError as error:
        fix = f"{error.strerror}."
        raise invalid(
            "local_cluster", "the command", "a program that can be run", words[0], fix
        ) from None


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="local_cluster",
        usage="python jobs/local_cluster.py [options] -- command ...",
        description="Run a command against a Spark cluster on this machine.",
        epilog="{master} in the command, and MASTER in its environment, are the master's URL.",
    )
    parser.add_argument("--workers", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--cores", type=int, default=1, help="cores of a worker (default: 1)")
    parser.add_argument("--memory", default="2g", help="memory of a worker (default: 2g)")
    parser.add_argument("--worker-python", metavar="PATH", help="interpreter of Python workers")
    parser.add_argument("command", nargs="+", help="the command and its arguments")
    options = parser.parse_args(argv)
    for flag, value in (("--workers", options.workers), ("--cores", options.cores)):
        if value < 1:
            raise invalid("local_cluster", flag, "1 or more", value, "Give a larger one.")
    return options


def _raise_exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Start a cluster, run the command, take the cluster down; return the command's status."""
    with user_errors("local_cluster"):
        options = _parse(argv)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _raise_exit)
        with LocalCluster(
            options.workers, options.cores, options.memory, options.worker_python
        ) as cluster:
            return run_command(cluster, options.command)


if __name__ == "__main__":
    sys.exit(main())
