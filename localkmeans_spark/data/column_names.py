"""Column names → columns, by the rules of Spark SQL; Spark is asked for nested fields alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.spark_private import analysis_errors_unlogged


class FoundColumn(NamedTuple):
    """A column: its name as Spark reads it, and what the schema says of it."""

    name: str
    field: StructField

    @property
    def column(self) -> Column:
        """Made only when asked for: thousands of them take seconds."""
        return F.col(self.name)


def quoted(name: str) -> str:
    """Return a name as Spark reads it back unchanged, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


class ColumnNames:
    """The columns of a DataFrame by name.

    Parameters
    ----------
    df : DataFrame
    owner : str
        Class shown in messages.
    """

    def __init__(self, df: DataFrame, owner: str) -> None:
        self._df, self._owner = df, owner
        self._is_exact = case_matters(df.sparkSession)
        self._fields: dict[str, list[StructField]] = {}
        for field in df.schema:
            self._fields.setdefault(self._key(field.name), []).append(field)

    def resolve(self, name: str, parameter: str) -> FoundColumn:
        """Return the column a name stands for.

        A name with a dot is a column of that name first, a nested field second. Upper and lower
        case differ only if ``spark.sql.caseSensitive`` says so.

        Raises
        ------
        InvalidInputError
            If there is no such column, or several; the message lists the columns present.
        """
        whole = self._named(name)
        if len(whole) == 1:
            return FoundColumn(quoted(whole[0].name), whole[0])
        if whole:
            fact = Fact(f"{name!r}, which {len(whole)} columns have")
            raise self._wrong(parameter, "the name of one column", fact, "Rename all but one. ")
        with analysis_errors_unlogged():
            try:
                (field,) = self._df.select(F.col(name)).schema
            except (AnalysisException, ValueError):  # none, or several as by "*"
                raise self._wrong(parameter, "the name of a column", name) from None
        return FoundColumn(name, field)

    def check_new(self, new: Mapping[str, str | None]) -> None:
        """Raise if a column to be added has the name of another one.

        Parameters
        ----------
        new : mapping
            Parameter → name of the column that it adds, or None.
        """
        taken: dict[str, str] = {}
        for parameter, name in new.items():
            if name is None:
                continue
            subject = f"parameter '{parameter}'"
            setter = f"set{parameter[0].upper()}{parameter[1:]}"
            if self._named(name):
                raise invalid(
                    self._owner, subject, "a column that the DataFrame does not have yet", name,
                    f"Drop that column, or call {setter} with another name.",
                )  # fmt: skip
            if self._key(name) in taken:
                raise invalid(
                    self._owner, subject, f"another name than {taken[self._key(name)]}", name,
                    f"Call {setter} with a free name.",
                )  # fmt: skip
            taken[self._key(name)] = parameter

    def _key(self, name: str) -> str:
        return name if self._is_exact else name.lower()

    def _named(self, name: str) -> list[StructField]:
        return self._fields.get(self._key(name), [])

    def _wrong(self, parameter: str, rule: str, fact: str, fix: str = "") -> InvalidInputError:
        present = ", ".join(self._df.columns) or "none"
        return invalid(
            self._owner, f"parameter '{parameter}'", rule, fact, f"{fix}The columns are: {present}."
        )  # fmt: skip


def case_matters(session: SparkSession) -> bool:
    """Whether names that differ in case only are different names."""
    return str(session.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
