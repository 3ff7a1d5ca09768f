"""Files around the code say what is so: the workflow, the settings, the bundle."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_workflow_runs_the_matrix_of_noxfile():
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MATRIX"
    ]
    assert isinstance(table, ast.Dict)
    keys = [ast.literal_eval(key) for key in table.keys]
    pythons = [ast.literal_eval(value.elts[0]) for value in table.values]
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    rows = re.findall(r"\{session: (\S+), python: \"([\d.]+)\"\}", text)
    assert rows == list(zip(keys, pythons, strict=True))


@pytest.mark.parametrize("name", ["laptop", "standalone", "yarn", "kubernetes"])
def test_every_setting_has_its_reason(name):
    lines = (ROOT / "conf" / f"{name}.conf").read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    assert len(settings) >= 6
    assert all(re.fullmatch(r"spark\.[\w.]+ +\S+", line) for line in settings)
    assert len({line.split()[0] for line in settings}) == len(settings)
    reasons = 0
    for before, line in zip(["", *lines], lines, strict=False):
        reasons += line in settings and before.startswith("#")
    assert reasons >= len(settings) - 5  # settings of one purpose stand together


def test_the_fast_settings_are_those_of_the_file():
    from localkmeans_spark.cli.session import FAST_SETTINGS

    lines = (ROOT / "conf" / "spark-defaults.conf").read_text().splitlines()
    of_file = dict(line.split() for line in lines if line and not line.startswith("#"))
    # Windows, where it is "false", has no such sockets.
    assert of_file == {**FAST_SETTINGS, "spark.python.unix.domain.socket.enabled": "true"}


def test_the_bundle_names_what_there_is():
    text = (ROOT / "databricks.yml").read_text()
    assert "package_name: localkmeans_spark" in text
    project = (ROOT / "pyproject.toml").read_text()
    entry = re.search(r"entry_point: (\S+)", text)[1]
    assert f"\n{entry} = " in project
    assert (ROOT / re.search(r"python_file: (\S+)", text)[1]).is_file()
    from localkmeans_spark.cli.commands import application

    flags = {word for option in application().commands["fit"].params
             for word in (*option.opts, *option.secondary_opts)}  # fmt: skip
    used = set(re.findall(r"- (--[\w-]+)", text))
    assert used and used <= flags
    variables = set(re.findall(r"\$\{var\.(\w+)\}", text))
    assert variables == set(re.findall(r"^  (\w+):\n    description", text, flags=re.MULTILINE))


def test_documented_parameters_exist():
    wrong = []
    for path in sorted((ROOT / "localkmeans_spark").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            doc = ast.get_docstring(node) or ""
            section = re.split(r"\n\w[\w ]*\n---", doc.partition("Parameters\n----------\n")[2])[0]
            entries = re.findall(r"^(\w[^:\n]*?) :", section, re.MULTILINE)
            named = {name.strip() for entry in entries for name in entry.split(",")}
            body = node.body if isinstance(node, ast.ClassDef) else []
            inits = [item for item in body if getattr(item, "name", "") == "__init__"]
            makers = inits if isinstance(node, ast.ClassDef) else [node]
            taken = {
                each.arg for item in makers for each in ast.walk(item.args) if "arg" in vars(each)
            }
            fields = {item.target.id for item in body if isinstance(item, ast.AnnAssign)}
            if unknown := named - (taken or fields):
                wrong.append(f"{path.name}: {node.name}: {unknown}")
    assert not wrong
