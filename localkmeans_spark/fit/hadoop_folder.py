"""A folder on any file system that Hadoop knows, through the running session's JVM."""

from __future__ import annotations

import uuid
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class HadoopFolder:
    """A folder and the files in it.

    Every method raises ``OSError`` with the reason in one line when the file system refuses.

    Parameters
    ----------
    session : SparkSession
    path : str
        As Spark takes it: with a scheme, or on the default file system.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        context = session.sparkContext
        self._jvm: Any = context._jvm
        self._settings: Any = context._jsc.hadoopConfiguration()
        self.path = path
        self._fs: Any = self._try(lambda: self._place().getFileSystem(self._settings))

    def child(self, name: str) -> HadoopFolder:
        """Return a folder in this one."""
        found = object.__new__(HadoopFolder)
        found.__dict__.update(self.__dict__, path=f"{self.path.rstrip('/')}/{name}")
        return found

    def names(self) -> list[str]:
        """Return the names in the folder, sorted; none when there is no folder."""
        if not self._try(lambda: self._fs.exists(self._place())):
            return []
        found = self._try(lambda: self._fs.listStatus(self._place()))
        return sorted(str(status.getPath().getName()) for status in found)

    def create(self) -> None:
        """Create the folder and those above it; it may exist."""
        if not self._try(lambda: self._fs.mkdirs(self._place())):
            raise OSError("it cannot be created")

    def read(self, name: str, most: int) -> bytes:
        """Return a file's bytes, if there are not more than ``most``."""

        def load() -> bytes:
            if self._fs.getFileStatus(self._place(name)).getLen() > most:
                raise OSError(f"{name} is larger than {most:,} bytes")
            stream = self._fs.open(self._place(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        return self._try(load)

    def write(self, name: str, data: bytes) -> None:
        """Write a file aside, then give it its name: nobody ever sees half of it."""
        aside, target = self._place(f".{name}.{uuid.uuid4().hex[:8]}"), self._place(name)

        def store() -> bool:
            stream = self._fs.create(aside, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            self._fs.delete(target, False)
            return self._fs.rename(aside, target)  # most failures come back as False

        if not self._try(store):
            raise OSError(f"{name} cannot be put in its place")

    def remove(self, name: str | None = None) -> None:
        """Delete a file, or the whole folder; neither need exist."""
        self._try(lambda: self._fs.delete(self._place(name), True))

    def _place(self, name: str | None = None) -> Any:
        path = self.path if name is None else f"{self.path.rstrip('/')}/{name}"
        return self._jvm.org.apache.hadoop.fs.Path(path)

    @staticmethod
    def _try(action: Any) -> Any:
        try:
            return action()
        except Py4JError as error:
            cause = getattr(error, "java_exception", None)
            text = str(cause.toString() if cause is not None else error)
            raise OSError(text.splitlines()[0]) from None
