"""What this library calls of PySpark's private side, all of it: nothing public does the same.

Seen to work with PySpark 3.5, 4.0, 4.1 and 4.3 (``tests/compat``). These calls need a classic
session, whose driver has a JVM of its own; those of Spark Connect have none.
"""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import Fact, invalid

if TYPE_CHECKING:
    # Not in `pyspark-client`, as is py4j: all of a classic session is imported where it is needed.
    from pyspark import RDD, SparkContext

try:
    from py4j.protocol import Py4JError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """An error of the driver's JVM, of which there is none."""


DRIVER_MEMORY, CONNECT_MESSAGES = "spark.driver.memory", "what Spark Connect takes"
# What Spark's defaults give to a server of Spark Connect; eight sets of centers that fit into its
# messages.
_CONNECT_BYTES = 1 << 29

T = TypeVar("T")
Path = TypeVar("Path", bound="HadoopPath")


def is_connect(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, without contexts, RDDs and broadcasts."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def models_one_by_one(fit: Callable[[int], Any], n: int) -> Iterator[tuple[int, Any]]:
    """Return an iterator of ``(index, fit(index))``, in order, that threads may share."""
    from pyspark.ml.base import _FitMultipleIterator  # 1 s to import, and no worker needs it

    return _FitMultipleIterator(fit, n)


@contextmanager
def analysis_errors_unlogged() -> Iterator[None]:
    """Keep PySpark 4 from writing an analysis error to stderr, as JSON, before it raises it."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5 writes nothing
        yield
        return
    thread = threading.get_ident()

    def is_of_another_thread(record: logging.LogRecord) -> bool:
        return record.thread != thread

    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    loggers = [PySparkLogger.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(is_of_another_thread)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_of_another_thread)


def memory_limits(session: SparkSession) -> dict[str, int]:
    """Return the settings that limit what a task sends and the driver takes, in bytes.

    The driver's Java heap, which may be larger than ``spark.driver.memory``, and of
    ``spark.driver.maxResultSize`` and ``spark.executor.pyspark.memory`` those that limit. Sessions
    of Spark Connect do not tell; they take messages of 128 MB.
    """
    if is_connect(session):
        return {CONNECT_MESSAGES: _CONNECT_BYTES}
    context = session.sparkContext
    jvm: Any = context._jvm
    conf = context._jsc.sc().conf()
    limits = {DRIVER_MEMORY: int(jvm.java.lang.Runtime.getRuntime().maxMemory())}
    result_size = int(conf.getSizeAsBytes("spark.driver.maxResultSize", "1g"))
    if result_size > 0:  # 0 means no limit
        limits["spark.driver.maxResultSize"] = result_size
    if conf.contains("spark.executor.pyspark.memory"):
        # Without a unit it is in MiB.
        worker = int(conf.getSizeAsMb("spark.executor.pyspark.memory")) << 20
        limits["spark.executor.pyspark.memory"] = worker
    return limits


def count_executors(context: SparkContext) -> int:
    """Return how many executors there are now."""
    # The driver is in the list too; in local mode it is the only one.
    return max(1, context._jsc.sc().getExecutorMemoryStatus().size() - 1)


# What Spark puts in the place of the rest of a plan, above spark.sql.maxPlanStringLength.
_CUT = re.compile(r"(?:Truncated plan of \d+|\.\.\. \d+ more) characters")


def plan_text(rows: DataFrame) -> str | None:
    """Return the steps by which Spark would make the rows; None if it does not say."""
    try:
        if is_connect(rows.sparkSession):
            explain: Any = rows._explain_string
            text = str(explain())
        else:
            text = str(rows._jdf.queryExecution().executedPlan().toString())
    except (AttributeError, TypeError, Py4JError):
        return None
    return None if _CUT.search(text) else text


def with_settings(rows: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Return the same rows, made with settings that hold for them alone.

    Settings belong to a session, and other threads make their queries in the user's. So the query
    moves to a copy of it, which has the same settings, catalog and cache, and which the JVM frees
    with the query.
    """
    session = rows.sparkSession
    own = session._jsparkSession.cloneSession()
    for name, value in settings.items():
        own.conf().set(name, value)
    dataset_class: Any = session.sparkContext._jvm
    for part in rows._jdf.getClass().getName().split("."):  # Spark 4 moved the class
        dataset_class = getattr(dataset_class, part)
    return type(rows)(dataset_class.ofRows(own, rows._jdf.logicalPlan()), session)


def binary_rdd(rows: DataFrame) -> RDD:
    """Return the values of a DataFrame's one binary column.

    Straight from the JVM's byte arrays: a Python RDD of rows would pickle each of them twice.
    """
    from pyspark import RDD

    context = rows.sparkSession.sparkContext
    jvm: Any = context._jvm
    typed = getattr(rows._jdf, "as")(jvm.org.apache.spark.sql.Encoders.BINARY())
    return RDD(typed.javaRDD(), context, NoOpSerializer())


# What Spark SQL puts into the environment of its Python workers, but not of those of RDDs.
_MARK_OF_SQL = "SPARK_SIMPLIFIED_TRACEBACK"


@contextmanager
def workers_of_sql(context: SparkContext) -> Iterator[None]:
    """Let jobs on RDDs, begun inside, run in the worker processes that Spark SQL started.

    Spark keeps a pool of workers for every environment. With the same one, the passes of a fit go
    on in the processes that took the rows in: half as many, each of which takes about a second to
    start and import.
    """
    if _MARK_OF_SQL in context.environment:  # the user's, or another thread's
        yield
        return
    # Another dictionary each time: threads that begin jobs of their own walk through it.
    context.environment = {**context.environment, _MARK_OF_SQL: "1"}
    try:
        yield
    finally:
        environment = dict(context.environment)
        environment.pop(_MARK_OF_SQL, None)
        context.environment = environment


def mllib_kmeans(centers: np.ndarray, measure: str) -> Any:
    """Return MLlib's ``KMeansModel`` of these centers, made without a file.

    Raises
    ------
    InvalidInputError
        In a session of Spark Connect.
    """
    session = SparkSession.active()
    if is_connect(session):
        raise invalid(
            "LocalKMeansModel", "the session for toMLlib()", "a classic one",
            Fact("one of Spark Connect"), "Use clusterCenters(), which is there in any session.",
        )  # fmt: skip
    from pyspark.ml.clustering import KMeansModel
    from pyspark.mllib.common import _py2java
    from pyspark.mllib.linalg import Vectors

    context: Any = session.sparkContext
    clustering = context._jvm.org.apache.spark
    vectors = context._gateway.new_array(clustering.mllib.linalg.Vector, len(centers))
    for i, row in enumerate(centers):
        vectors[i] = _py2java(context, Vectors.dense(row))
    old_model = clustering.mllib.clustering.KMeansModel(vectors, measure)
    uid = KMeansModel._randomUID()
    model = KMeansModel(clustering.ml.clustering.KMeansModel(uid, old_model))
    model._resetUid(uid)
    return model


def jvm_conf(settings: Mapping[str, str]) -> SparkConf:
    """Return the settings of the JVM, from files and ``spark-submit``; start it if there is none.

    A new one is started with these settings, which then win over those of files.
    """
    from pyspark import SparkContext

    asked = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=asked)  # SparkConf knows the others only then
    return SparkConf()


class HadoopPath:
    """A file or folder on any file system that Hadoop knows.

    Every method raises ``OSError`` with the reason in one line when the file system refuses.

    Parameters
    ----------
    session : SparkSession
    path : str
        As Spark takes it: with a scheme, or on the default file system.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        if is_connect(session):
            raise OSError("a session of Spark Connect does not reach it; take a classic one")
        context: Any = session.sparkContext
        self._jvm: Any = context._jvm
        self._path = self._try(lambda: self._jvm.org.apache.hadoop.fs.Path(path))
        self._fs = self._try(lambda: self._path.getFileSystem(context._jsc.hadoopConfiguration()))

    def __str__(self) -> str:
        """The path as it was given."""
        return str(self._path.toString())

    @property
    def uri(self) -> str:
        """The path with its scheme."""
        return str(self._try(lambda: self._fs.makeQualified(self._path).toString()))

    def child(self: Path, name: str) -> Path:
        """Return the path of that name in this folder."""
        return self._at(self._path, name)

    def beside(self: Path, name: str) -> Path:
        """Return the path of that name in the same folder."""
        return self._at(self._path.getParent(), name)

    def _at(self: Path, folder: Any, name: str) -> Path:
        found = object.__new__(type(self))
        path = self._jvm.org.apache.hadoop.fs.Path(folder, name)
        found.__dict__.update(self.__dict__, _path=path)
        return found

    def exists(self) -> bool:
        """Say whether anything is there."""
        return bool(self._try(lambda: self._fs.exists(self._path)))

    def is_directory(self) -> bool:
        """Say whether it is a folder."""
        return self.exists() and bool(
            self._try(lambda: self._fs.getFileStatus(self._path).isDirectory())
        )

    def names(self) -> list[str]:
        """Return the names in the folder, sorted; none when there is no folder."""
        if not self.exists():
            return []
        found = self._try(lambda: self._fs.listStatus(self._path))
        return sorted(str(status.getPath().getName()) for status in found)

    def matches(self, pattern: str) -> list[str]:
        """Return the paths that a pattern on any file system stands for, with their schemes."""
        raw = self._jvm.org.apache.hadoop.fs.Path(pattern)
        settings = self._fs.getConf()
        found = self._try(lambda: raw.getFileSystem(settings).globStatus(raw)) or []
        return [str(status.getPath().toString()) for status in found]

    def create(self) -> None:
        """Create the folder and those above it; it may exist."""
        if not self._try(lambda: self._fs.mkdirs(self._path)):
            raise OSError("it cannot be created")

    def read(self) -> bytes:
        """Return the file's bytes; none if it is no file."""
        if not self.exists() or self.is_directory():
            return b""

        def load() -> bytes:
            stream = self._fs.open(self._path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        return self._try(load)

    def write(self, data: bytes) -> None:
        """Write the file; nobody ever sees half of it."""

        def store(path: str) -> None:
            def run() -> None:
                stream = self._fs.create(self._jvm.org.apache.hadoop.fs.Path(path), True)
                try:
                    stream.write(bytearray(data))
                finally:
                    stream.close()

            self._try(run)

        self.replace(store)

    def replace(self, make: Callable[[str], None]) -> None:
        """Let ``make`` write a file or folder beside it, then give that its name."""
        aside = self.beside(f".{self._path.getName()}.{uuid.uuid4().hex[:8]}")
        try:
            make(str(aside))
            self.remove()
            aside.rename(self)
        except BaseException:
            with suppress(OSError):
                aside.remove()
            raise

    def rename(self, target: HadoopPath) -> None:
        """Move it to a path where nothing exists."""
        # Hadoop reports most failures by returning False.
        if target.exists() or not self._try(lambda: self._fs.rename(self._path, target._path)):
            raise OSError(f"{self} cannot be renamed to {target}")

    def remove(self) -> None:
        """Delete the file, or the whole folder; it need not exist."""
        self._try(lambda: self._fs.delete(self._path, True))

    @staticmethod
    def _try(action: Callable[[], T]) -> T:
        try:
            return action()
        except (Py4JError, PySparkException) as error:  # the latter for a path that is none
            cause = getattr(error, "java_exception", None)
            text = str(cause.toString() if cause is not None else error)
            raise OSError(text.splitlines()[0]) from None
