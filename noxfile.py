"""The tests with every PySpark in range and the oldest and newest of what it runs on.

``make matrix`` runs all of it, ``nox -s "tests(spark-3.5-floors)"`` one session, and words after
``--`` go to pytest instead of the folders below. A Python that is not found is skipped.
"""

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

# What Databricks Runtime 15.4 LTS has, the oldest that is supported; what 17.3 LTS has.
FLOORS = "numpy==1.23.5 pandas==1.5.3 pyarrow==14.0.1 scipy==1.11.1 threadpoolctl==2.2.0"
RUNTIME_17 = "numpy==2.1.3 pandas==2.2.3 pyarrow==19.0.1 scipy==1.15.1 threadpoolctl==3.5.0"
# Name: Python, PySpark, and the versions that pip would not choose by itself.
MATRIX = {
    "spark-3.5-floors": ("3.10", "==3.5.0", f"{FLOORS} click==8.0.4"),
    "spark-3.5-databricks-15.4": ("3.11", "==3.5.0", f"{FLOORS} click==8.0.4"),
    # PySpark 3.5's extra "connect" takes NumPy 1, new releases of pyarrow take NumPy 2 only.
    "spark-3.5-newest": ("3.11", "==3.5.*", "pandas<3 numpy>=2,<2.4"),
    "spark-4.0-oldest": ("3.10", "==4.0.0", "numpy==1.26.4 pandas==2.0.0 pyarrow==14.0.1"),
    "spark-4.0-databricks-17.3": ("3.12", "==4.0.0", RUNTIME_17),
    "spark-4.0-newest": ("3.13", "==4.0.*", "pandas<3"),
    "spark-4.1-oldest": ("3.10", "==4.1.0", "numpy==1.26.4 pandas==2.2.0 pyarrow==15.0.0"),
    "spark-4.1-newest": ("3.13", "==4.1.*", "pandas<3"),
    "spark-4.x-oldest": ("3.11", "==4.3.*", "numpy==1.26.4 pandas==2.2.0 pyarrow==18.0.0"),
    "spark-4.x-newest": ("3.13", ">=4.3,<5", "pandas>=3"),
    "spark-4.x-python-3.14": ("3.14", ">=4.3,<5", "pandas>=3"),
}
FOLDERS = ("tests/kernel", "tests/api", "tests/engine", "tests/frozen", "tests/connect")


@nox.session
@nox.parametrize(
    ("python", "pyspark", "pins"), [nox.param(*case, id=name) for name, case in MATRIX.items()]
)
def tests(session: nox.Session, pyspark: str, pins: str) -> None:
    """Run the tests that depend on versions."""
    session.install("--editable", ".[jobs,test]", f"pyspark[connect]{pyspark}")
    session.install(*pins.split())  # pandas 3, too, which the extra [spark] leaves out
    session.run("python", "-m", "pip", "list", "--exclude-editable")
    session.run("python", "-m", "pytest", "-q", *(session.posargs or FOLDERS))
