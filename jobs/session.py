"""The Spark session of a job: the same code under ``python`` and under ``spark-submit``."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from jobs.build_zip import build_zip
from jobs.failures import debug_wanted, user_errors
from jobs.java import ensure_java
from jobs.quiet_start import mute_filtered, quiet_start, unmute_filtered

__all__ = ["FAST_SETTINGS", "open_session", "user_errors"]

logger = logging.getLogger(__name__)

REPOSITORY = Path(__file__).resolve().parents[1]

# The fast path between the JVM and the Python workers; conf/spark-defaults.conf says the same.
# PySpark before 4.1 has no unix-domain sockets and takes no notice.
FAST_SETTINGS = {
    "spark.buffer.size": "1048576",
    "spark.python.unix.domain.socket.enabled": "true" if os.name == "posix" else "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
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
    and this repository, and is quiet. A session that is already open is lent and stays open.

    Parameters
    ----------
    app_name : str
        Shown by Spark's web pages.
    master : str or None
        Spark master; None means ``local[*]``. Ignored under ``spark-submit``.
    conf : mapping of str to str or None
        Spark settings that win over the ones made here, but not over ``spark-submit``'s.
    debug : bool or None
        Whether Spark's own messages are wanted; None asks :func:`jobs.failures.debug_wanted`.

    Yields
    ------
    SparkSession

    Raises
    ------
    InvalidInputError
        When there is no Java that fits.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    settings = dict(conf or {})
    quiet = not (debug_wanted() if debug is None else debug)
    if not _submitted():
        settings = {"spark.master": master or "local[*]", **settings}
        _launch(settings, quiet)
    unmute_filtered()
    spark = _connect(app_name, settings)
    if _submitted() and quiet and not _own_log_settings(spark.sparkContext.getConf()):
        # Spark's own level under spark-submit buries the job's lines under hundreds of its own.
        spark.sparkContext.setLogLevel("ERROR")
    try:
        if master and master != spark.sparkContext.master:
            logger.warning("master %s is ignored: spark-submit chose another one", master)
        with _package_sent(spark):
            yield spark
    finally:
        mute_filtered()
        spark.stop()


def _submitted() -> bool:
    """Say whether spark-submit started this process (its JVM is there already)."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _launch(settings: dict[str, str], quiet: bool) -> None:
    """Start the JVM with ``settings`` and what must be known before it starts."""
    if SparkContext._gateway is not None:  # of an earlier session in this process
        return
    ensure_java()
    if _is_local(settings["spark.master"]):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    known = _spark_defaults()
    launch = SparkConf(loadDefaults=False)
    for key, value in _launch_defaults(settings["spark.master"], quiet).items():
        if key not in known:
            launch.set(key, value)
    for key, value in settings.items():
        launch.set(key, value)
    with quiet_start() if quiet else contextlib.nullcontext():
        # What PySpark's own shell does; there is no public call that starts the JVM alone.
        SparkContext._ensure_initialized(conf=launch)


def _launch_defaults(master: str, quiet: bool) -> dict[str, str]:
    defaults = {"spark.ui.enabled": "false"}
    if _is_local(master):
        # Not the host's name, which a laptop may be unable to resolve away from its network.
        defaults["spark.driver.bindAddress"] = defaults["spark.driver.host"] = "127.0.0.1"
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            defaults["spark.driver.memory"] = f"{_driver_megabytes()}m"
    if quiet:
        defaults["spark.ui.showConsoleProgress"] = "false"
        log_settings = REPOSITORY / "conf" / "log4j2.properties"
        own = _conf_directory()
        if log_settings.is_file() and not (own and (own / "log4j2.properties").is_file()):
            # "default" options stand before the user's extraJavaOptions and lose against them.
            option = f"-Dlog4j2.configurationFile={log_settings.as_uri()}"
            defaults["spark.driver.defaultJavaOptions"] = option
    return defaults


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


def _conf_directory() -> Path | None:
    """Return the user's own directory of Spark settings, if there is one."""
    if os.environ.get("SPARK_CONF_DIR"):
        return Path(os.environ["SPARK_CONF_DIR"])
    if os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"]) / "conf"
    return None


def _own_log_settings(conf: SparkConf) -> bool:
    """Say whether the user has settled what Spark logs."""
    own = _conf_directory()
    options = conf.get("spark.driver.extraJavaOptions", "") or ""
    return "log4j" in options or bool(own and (own / "log4j2.properties").is_file())


def _spark_defaults() -> set[str]:
    """Return the settings that the user's spark-defaults.conf makes, by name."""
    directory = _conf_directory()
    if directory is None or not (directory / "spark-defaults.conf").is_file():
        return set()
    lines = (directory / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    return {line.replace("=", " ").split()[0] for line in lines if line.strip(" =")}


def _connect(app_name: str, settings: dict[str, str]) -> SparkSession:
    """Open the session in the JVM that runs, adding to the settings it was started with."""
    SparkContext._ensure_initialized()
    conf = SparkConf()
    for key, value in settings.items():
        if _submitted():
            conf.setIfMissing(key, value)
        else:
            conf.set(key, value)
    for key, value in FAST_SETTINGS.items():
        conf.setIfMissing(key, value)
    if _is_local(conf.get("spark.master") or "") and _in_source_tree():
        _put_on_worker_path(conf, REPOSITORY)
    return SparkSession.builder.config(conf=conf).appName(app_name).getOrCreate()


def _in_source_tree() -> bool:
    return (REPOSITORY / "localkmeans_spark" / "__init__.py").is_file()


def _put_on_worker_path(conf: SparkConf, directory: Path) -> None:
    """Let Python workers on this machine import what lies in ``directory``."""
    key = "spark.executorEnv.PYTHONPATH"
    paths = [str(directory), conf.get(key, "") or ""]
    conf.set(key, os.pathsep.join(path for path in paths if path))


@contextmanager
def _package_sent(spark: SparkSession) -> Iterator[None]:
    """Give workers on other machines the package, as ``spark-submit --py-files`` would."""
    local = _is_local(spark.sparkContext.master or "")
    if _submitted() or local or not _in_source_tree():
        yield
        return
    # Spark hands the file out whenever an executor joins, so it stays until the session ends.
    with tempfile.TemporaryDirectory(prefix="localkmeans-") as directory:
        spark.sparkContext.addPyFile(str(build_zip(Path(directory) / "localkmeans_spark.zip")))
        yield
