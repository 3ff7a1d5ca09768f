"""The Spark session of a command: the same under ``python`` and under ``spark-submit``."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from localkmeans_spark.cli.failures import debug_wanted
from localkmeans_spark.cli.java import ensure_java
from localkmeans_spark.cli.package_zip import PACKAGE, build_zip
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.spark_private import (
    analysis_errors_unlogged,
    is_connect,
    submitted_conf,
)

# As Spark's own (SparkSubmit, SparkMasterRegex); Mesos until 3.5.
_MASTER = re.compile(
    r"local|local\[\s*([1-9]\d*|\*)\s*(,\s*\d+\s*)?\]|local-cluster\[\s*\d+\s*(,\s*\d+\s*){2}\]"
    r"|yarn|spark://[^\s,]+:\d{1,5}(,[^\s,]+:\d{1,5})*|(k8s|mesos)://\S+"
)
_SECONDS = 10  # to wait for an answer of a master
CONNECT = "Spark Connect"
# The fast path between the JVM and the Python workers; conf/spark-defaults.conf says the same.
# PySpark before 4.1 has no unix-domain sockets and takes no notice.
FAST_SETTINGS = {
    "spark.buffer.size": "1048576",
    "spark.python.unix.domain.socket.enabled": "true" if os.name == "posix" else "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": "16777216",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": "67108864",
}


@contextmanager
def open_session(
    app_name: str,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    debug: bool | None = None,
) -> Iterator[SparkSession]:
    """Open a Spark session for the block and stop it afterwards.

    Under ``spark-submit``, its master and settings stay as they are and only what nobody set is
    added. Started by ``python``, the session also finds a Java, gives the workers this interpreter
    and this package, and is quiet. A session that is already open is lent and stays open.

    Parameters
    ----------
    app_name : str
        Shown by Spark's web pages.
    master : str or None
        Spark master; None means ``local[*]``. Ignored under ``spark-submit``.
    conf : mapping of str to str or None
        Spark settings that win over the ones made here, but not over ``spark-submit``'s.
    debug : bool or None
        Whether Spark's own messages are wanted; None asks :func:`failures.debug_wanted`.

    Yields
    ------
    SparkSession

    Raises
    ------
    InvalidInputError
        When there is no Java that fits, or it does not start, or the master is no master's URL or
        cannot be reached.
    """
    active = SparkSession.getActiveSession()
    if active is None and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        active = SparkSession.builder.getOrCreate()  # the platform's own, which it also stops
    if active is not None:
        yield active
        return
    quiet = not (debug_wanted() if debug is None else debug)
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(analysis_errors_unlogged())
        if "PYSPARK_GATEWAY_PORT" in os.environ:  # by spark-submit: its JVM is there already
            spark = _join(app_name, dict(conf or {}), master, quiet)
        else:
            if master is not None:
                check_master(master)
            spark = _launch(app_name, {"spark.master": master or "local[*]", **(conf or {})}, quiet)
            if not _is_local(str(spark.sparkContext.master)):
                # Spark hands the file out whenever an executor joins: it stays until the end.
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="localkmeans-"))
                package = build_zip(Path(folder) / "localkmeans_spark.zip")
                spark.sparkContext.addPyFile(str(package))
        stack.callback(spark.stop)
        yield spark


def master(spark: SparkSession) -> str:
    """Return the session's master; of Spark Connect, which does not tell, a word for it."""
    return CONNECT if is_connect(spark) else str(spark.sparkContext.master)


def check_master(master: str) -> None:
    """Raise unless this is a master's URL, and one of its hosts can be reached if it names some.

    Spark itself tries for a minute, and ends in words about its gateway.
    """
    if not _MASTER.fullmatch(master):
        rule = "local, local[N], local[*], yarn, spark://HOST:PORT or k8s://https://HOST:PORT"
        raise invalid("Spark", "--master", rule, master, "Check the spelling.")
    failed = ""
    for place in master.removeprefix("spark://").split(",") if "spark://" in master else ():
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            failed = getattr(error, "strerror", None) or str(error)
    if failed:
        rule = "a Spark master that can be reached from here"
        fix = f"The connection failed ({failed}). Check host and port, and that the master runs."
        raise invalid("Spark", "--master", rule, master, fix)


def _launch(app_name: str, settings: dict[str, str], quiet: bool) -> SparkSession:
    """Start a JVM with the settings, and with defaults where the user's own files have none."""
    ensure_java()
    defaults = {**FAST_SETTINGS, "spark.ui.enabled": "false"}
    if _is_local(settings["spark.master"]):
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            os.environ.setdefault(name, sys.executable)
        # Not the host's name, which a laptop may be unable to resolve away from its network.
        defaults["spark.driver.bindAddress"] = defaults["spark.driver.host"] = "127.0.0.1"
        defaults.update(_for_local_workers(SparkConf(loadDefaults=False)))
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            defaults["spark.driver.memory"] = f"{_driver_megabytes()}m"
    known = _users_defaults()
    settings = {key: value for key, value in defaults.items() if key not in known} | settings
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _stderr_aside(quiet) as said, _signals_kept():
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            if "JAVA_GATEWAY_EXITED" not in str(error):
                raise
            line = said()
    fix = "--debug shows all it says." if quiet else "See above."
    raise invalid("Spark", "Java", "able to start Spark", Fact(line or "an early end of it"), fix)


def _join(app_name: str, settings: dict[str, str], master: str | None, quiet: bool) -> SparkSession:
    """Open a session in the JVM of spark-submit, adding what nobody has set."""
    conf = submitted_conf()
    submitted_to = conf.get("spark.master") or ""
    if quiet:
        # Spark's own level buries the command's lines under hundreds of its own. What a failed
        # task has to say arrives as an exception.
        settings["spark.log.level"] = "FATAL" if _is_local(submitted_to) else "ERROR"
    if _is_local(submitted_to):
        settings |= _for_local_workers(conf)
    for key, value in {**FAST_SETTINGS, **settings}.items():
        conf.setIfMissing(key, value)
    if master and master != submitted_to:
        line = f"warning: --master {master} is ignored: spark-submit chose another one"
        print(line, file=sys.stderr, flush=True)
    with _signals_kept():
        return SparkSession.builder.config(conf=conf).appName(app_name).getOrCreate()


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _for_local_workers(conf: SparkConf) -> dict[str, str]:
    """Return what lets Python workers on this machine import this package."""
    key = "spark.executorEnv.PYTHONPATH"
    paths = [str(PACKAGE.parent), conf.get(key, "") or ""]
    return {key: os.pathsep.join(filter(None, paths))}


def _driver_megabytes() -> int:
    """Return a quarter of the memory, as Java does by itself, but 1 GiB at least and 8 at most.

    With a local master the rows are cached in the driver's heap; Spark's default of 1 GiB is
    small for that.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        memory = 0
    return min(max(memory // 4 // 2**20, 1024), 8192)


def _users_defaults() -> set[str]:
    """Return the settings that the user's spark-defaults.conf makes, by name."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    file = Path(folder or "/nowhere") / "spark-defaults.conf"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {line.replace("=", " ").split()[0] for line in lines if line.strip(" =")}


@contextmanager
def _stderr_aside(quiet: bool) -> Iterator[Callable[[], str]]:
    """Give processes started inside the block a file for stderr, which nobody reads unless asked.

    The JVM and Spark's Python workers write logs, warnings and stack traces there, all that
    matters of which reaches this process as an exception. Yields what returns the last line.
    """
    if not quiet:
        yield lambda: ""
        return
    with tempfile.TemporaryFile() as file:

        def last_line() -> str:
            file.seek(0)
            lines = file.read().decode(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")

        sys.stderr.flush()
        real = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield last_line
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Put back the handler of Ctrl-C that PySpark replaces by one that calls the JVM."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)
