"""What a fit says while it runs: a bar on terminals, lines elsewhere."""

import io
import logging
import sys
import threading

import pytest

from localkmeans_spark.progress import followed, is_listened_to, logged, logger
from localkmeans_spark.records import RoundRecord


def tell(number, iteration, steps, seconds, reverted=False):
    record = RoundRecord(
        round=number, iteration=iteration, local_steps=steps, inertia=8.0, center_shift=0.0,
        max_local_drift=0.0, rms_deviation=0.0, empty_clusters=0, reverted=reverted, bytes_down=0,
        bytes_up=0, seconds=seconds, disagreement=0.0,
    )  # fmt: skip
    logger.info("round %d: inertia 8", number, extra={"round_record": record})


def in_a_file(monkeypatch):
    """Stands for stderr in a file."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())


def test_a_line_a_round_with_the_time_left(monkeypatch):
    # As PySpark imports it, without a notebook around.
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    in_a_file(monkeypatch)
    lines = []
    with followed("fit", 20, lines.append):
        logger.info("LocalKMeans: reading")
        tell(1, 0, 5, seconds=10.0)
        tell(2, 5, 5, seconds=2.0, reverted=True)
        logger.warning("LocalKMeans: far values")
        tell(3, 5, 15, seconds=1.0)
    assert lines == [
        "reading",
        "round 1: inertia 8, at most about 2 min 30 s left",  # 15 iterations, at most a round each
        "round 2: inertia 8, at most about 1 min 30 s left",  # taken back: 15 of (10 + 2) / 2 s
        "warning: far values",
        "round 3: inertia 8, the last",
    ]


def test_a_bar_where_somebody_looks(monkeypatch):
    in_a_file(monkeypatch)
    lines = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with followed("fit", 20, lines.append):
        assert "fit: 0/20" in sys.stderr.getvalue()
        tell(1, 0, 5, seconds=1.0)
        logger.warning("LocalKMeans: far values")
        tell(1, 0, 3, seconds=1.0)  # another fit that is behind
    assert lines == ["warning: far values"], "all else belongs to the bar"
    drawn = sys.stderr.getvalue().split("\r")
    assert any(text.startswith("fit: 5/20") and "round 1: inertia 8" in text for text in drawn)
    assert not any(text.startswith("fit: 3/20") for text in drawn)


def test_the_log_is_left_as_it_was():
    def broken():
        with followed("fit", 20, print):
            assert logger.level == logging.INFO
            raise ValueError("in the fit")

    before = logger.level, list(logger.handlers)
    with pytest.raises(ValueError, match="in the fit"):
        broken()
    assert (logger.level, logger.handlers) == before


def test_two_fits_in_threads_tell_of_their_own_rounds(monkeypatch):
    in_a_file(monkeypatch)
    monkeypatch.setattr(logger, "propagate", False)  # pytest listens, too
    lines, other = [], []

    def second():
        assert not is_listened_to(), "the first shows its own fit alone"
        with followed("fit", 20, other.append):
            tell(1, 0, 3, seconds=1.0)

    with followed("fit", 20, lines.append):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        tell(1, 0, 5, seconds=1.0)
    assert len(lines) == len(other) == 1
    assert "15 s" in lines[0] and "17 s" in other[0]


def test_fits_that_end_in_another_order_than_they_began_in():
    before = logger.level
    first, second = logged(), logged()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert logger.level == logging.INFO, "the second fit still tells"
    second.__exit__(None, None, None)
    assert logger.level == before
