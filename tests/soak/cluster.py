"""A standalone Spark cluster on loopback for the soak: started, looked into and stopped."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from localkmeans_spark.cli.session import ensure_java
from tests.fast_java import OPTIONS

REPOSITORY = Path(__file__).resolve().parents[2]
_SPARK_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 90
_DISK = "32m"


class Cluster:
    """One master and two workers; the second has an address of its own where the system allows.

    Spark runs a second copy of a slow task on another host only, so two addresses are needed for
    speculation.

    Attributes
    ----------
    url : str
        The master's URL.
    disk : Path or None
        A small disk that holds the workers' local folders; None where it could not be mounted.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="localkmeans-soak-"))
        self.disk = self._mount()
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> Cluster:
        ensure_java()
        try:
            master = self._start("master", "master.Master", "127.0.0.1")
            self.url = self._wait_for(r"Starting Spark master at (spark://\S+)", "master", master)
            second = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
            for number, host in enumerate(("127.0.0.1", second)):
                work = ["--work-dir", str(self._folder / f"work-{number}")]
                size = ["--cores", "2", "--memory", "3g"]
                name = f"worker-{number}"
                worker = self._start(name, "worker.Worker", host, *size, *work, self.url)
                self._wait_for("(Successfully registered) with master", name, worker)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for daemon in reversed(self._daemons):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGTERM)
        for daemon in self._daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
        if self.disk is not None:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", str(self._folder)], check=False)

    def executors(self) -> list[int]:
        """Return the process ids of all executors."""
        workers = {daemon.pid for daemon in self._daemons[1:]}
        table = processes()
        return [
            pid
            for pid, (parent, command) in table.items()
            if parent in workers and "CoarseGrainedExecutorBackend" in command
        ]

    def python_processes(self, workers: bool) -> list[int]:
        """Return the ids of the executors' Python workers, or of the daemons that fork them."""
        table = processes()
        executors = set(self.executors())  # other sessions on this computer have daemons, too
        daemons = {pid for pid, (parent, _) in table.items() if parent in executors}
        daemons = {pid for pid in daemons if "daemon pyspark.worker" in table[pid][1]}
        forked = [pid for pid, (parent, _) in table.items() if parent in daemons]
        return forked if workers else sorted(daemons)

    def _mount(self) -> Path | None:
        disk = self._folder / "disk"
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(disk)]
        with contextlib.suppress(OSError):
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return disk
        return None

    def _start(self, name: str, main_class: str, host: str, *words: str) -> subprocess.Popen[bytes]:
        settings = self._folder / "conf"
        settings.mkdir(exist_ok=True)  # empty: the user's own Spark settings stay out of this
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env.update(
            SPARK_HOME=str(_SPARK_HOME),
            SPARK_CONF_DIR=str(settings),
            SPARK_LOCAL_IP=host,
            SPARK_LOCAL_DIRS=str((self.disk or self._folder) / name),
            SPARK_DAEMON_MEMORY="256m",
            SPARK_DAEMON_JAVA_OPTS=OPTIONS,
            # The master gives an application up after ten executors lost in a row; this one loses
            # more on purpose.
            SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false "
            "-Dspark.deploy.maxExecutorRetries=-1",
        )
        command = [str(_SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{main_class}"]
        free = ["--host", host, "--port", "0", "--webui-port", "0"]
        with (self._folder / f"{name}.log").open("wb") as log:
            daemon = subprocess.Popen(
                [*command, *free, *words], env=env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._daemons.append(daemon)
        return daemon

    def _wait_for(self, line: str, name: str, daemon: subprocess.Popen[bytes]) -> str:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            log = (self._folder / f"{name}.log").read_text(errors="replace")
            if found := re.search(line, log):
                return found.group(1)
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start:\n{log[-2000:]}")
            time.sleep(0.1)


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and command line of every living process."""
    lines = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    rows = (line.split(None, 3) for line in lines)
    return {
        int(row[0]): (int(row[1]), row[3]) for row in rows if len(row) == 4 and row[2][0] != "Z"
    }


def open_session(url: str) -> SparkSession:
    """Connect a driver to the cluster: two executors of one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": OPTIONS,
        "spark.executor.extraJavaOptions": OPTIONS,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
        "spark.python.daemon.module": "localkmeans_spark.daemon",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        # One file a partition, whatever the number of cores.
        "spark.sql.files.openCostInBytes": str(128 << 20),
        # A task may be hit more often than a cluster in the field would have it.
        "spark.task.maxFailures": "10",
        # Executors that were killed do not come back at their address: no use in asking for long.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.4",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.minTaskRuntime": "200ms",
    }
    builder = SparkSession.builder.master(url).appName("soak")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
