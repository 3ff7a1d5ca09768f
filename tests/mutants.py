"""Count, file by file, the mutants that tests noticed: ``make mutants`` prints it after its run.

``python -m mutmut show NAME`` tells what a survivor changed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

# Exit codes of pytest and of mutmut's own clock; None: not run yet.
_SURVIVED, _NO_TESTS, _NOT_RUN = 0, 33, None


def main() -> None:
    """Print one line a file, then the names of the survivors."""
    everyone: Counter[str] = Counter()
    survivors: list[str] = []
    print(f"{'file':45}{'mutants':>9}{'killed':>9}{'share':>9}")
    for path in sorted(Path("mutants").rglob("*.py.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        run = {name: code for name, code in codes.items() if code is not _NOT_RUN}
        alive = [name for name, code in run.items() if code in (_SURVIVED, _NO_TESTS)]
        if run:
            name = str(path.relative_to("mutants")).removesuffix(".meta")
            _line(name, len(run), len(run) - len(alive))
            everyone.update(run=len(run), killed=len(run) - len(alive))
            survivors += alive
    if everyone["run"]:
        _line("all", everyone["run"], everyone["killed"])
    print("\nsurvivors:", *survivors, sep="\n  ")


def _line(name: str, n_run: int, n_killed: int) -> None:
    print(f"{name:45}{n_run:9,}{n_killed:9,}{n_killed / n_run:9.1%}")


if __name__ == "__main__":
    main()
