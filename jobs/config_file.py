"""A TOML file of flags, turned into the words one would have typed."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.options import join_names
from localkmeans_spark.errors import Fact, invalid

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_as_flags(owner: str, path: str, known: Mapping[str, bool]) -> list[str]:
    """Read a TOML file of flags.

    Parameters
    ----------
    owner : str
        The command, for error messages.
    path : str
        File whose keys are the command's flags without dashes; ``-`` and ``_`` are the same.
    known : mapping of str to bool
        Flags by name (with ``_``) and whether each is a yes or no.

    Returns
    -------
    list of str
        For example ``["--k=8", "--no-safeguard"]``: the command's own parser checks the values,
        so the file and the command line share one set of rules.

    Raises
    ------
    InvalidInputError
        When the file cannot be read, is not TOML, or holds an unknown key or a table.
    """
    words = []
    for key, value in _load(owner, path).items():
        name = key.replace("-", "_")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            fix = f"Did you mean {_dashed(close[0])!r}?" if close else "Remove it."
            rule = "a flag of the command without its dashes"
            raise invalid(owner, f"{path}: key {key!r}", rule, Fact("an unknown key"), fix)
        words.append(_word(owner, f"{path}: key {key!r}", name, value, yes_or_no=known[name]))
    return words


def _load(owner: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise invalid(
            owner, "--config", "a readable file", path, f"{error.strerror or error}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise invalid(
            owner, f"--config {path}", "a TOML file", Fact(str(error)), "Mend that line."
        ) from None


def _word(owner: str, subject: str, name: str, value: Any, yes_or_no: bool) -> str:
    if yes_or_no:
        if not isinstance(value, bool):
            raise invalid(owner, subject, "true or false", value, "TOML writes them bare.")
        return f"--{_dashed(name)}" if value else f"--no-{_dashed(name)}"
    if isinstance(value, dict | bool):
        raise invalid(
            owner, subject, "a number, a string or a list of names", value, "Write key = value."
        )
    if isinstance(value, list):
        value = join_names(value)
    return f"--{_dashed(name)}={value}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")
