"""The entry point. Little is imported before signals and errors are looked after."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from localkmeans_spark.cli.messages import debug_wanted, user_errors

COMMANDS = ("fit", "predict", "sweep", "describe", "diagnose")


def main(argv: Sequence[str] | None = None) -> None:
    """Run ``localkmeans``; leave by ``SystemExit`` when something is wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in words if word in COMMANDS), "localkmeans")
    _run(name, words or ["--help"], None)


def script(name: str, argv: Sequence[str] | None = None) -> None:
    """Run a sub-command as ``jobs/NAME.py``."""
    _run(name, list(sys.argv[1:] if argv is None else argv), name)


def _open_closed_streams() -> None:
    """Let go nowhere what is written to a stream that the shell closed (``>&-``)."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w"))


def _run(owner: str, words: list[str], only: str | None) -> None:
    _open_closed_streams()
    with user_errors(owner, "--debug" in words or debug_wanted()):
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        from click.exceptions import Exit

        from localkmeans_spark.cli.commands import application

        command = application().commands[only] if only else application()
        called = f"python jobs/{only}.py" if only else "localkmeans"
        # Not command.main, which has its own words for Ctrl-C.
        with suppress(Exit), command.make_context(called, words) as context:  # Exit: --help
            command.invoke(context)


if __name__ == "__main__":
    main()
