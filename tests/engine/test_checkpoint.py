"""A fit that stopped and is started again: the same bits, or a word on why not."""

import logging
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from localkmeans_spark.config import FitConfig
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.checkpoint import open_checkpoint, pack, unpack
from localkmeans_spark.fit.driver import fit, fit_many
from localkmeans_spark.fit.partitions import open_partitions
from localkmeans_spark.fit.run import Fit

from .frames import frame_of, split


class StoppedError(Exception):
    """The driver's end, in the middle of a fit."""


@contextmanager
def stopped_after(number):
    """The fit inside ends as if its driver died when it tells of the next round."""

    def stop(line):
        if getattr(line, "round_record", None) and line.round_record.round > number:
            raise StoppedError
        return True

    logger = logging.getLogger("localkmeans_spark")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addFilter(stop)
    try:
        with pytest.raises(StoppedError):
            yield
    finally:
        logger.removeFilter(stop)
        logger.setLevel(level)


def blobs(seed=0):
    rng = np.random.default_rng(seed)
    return np.round(4 * rng.normal(size=(6, 3))[rng.integers(6, size=400)], 3) + rng.normal(
        size=(400, 3)
    )


@pytest.fixture(scope="module")
def frame(spark):
    rows = frame_of(spark, split(blobs(), 4)).cache()
    yield rows
    rows.unpersist()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, logger="localkmeans_spark")
    return lambda: [record.getMessage() for record in caplog.records]


def config_of(folder, **changes):
    options = {"k": 9, "seed": 5, "max_iter": 40, "tol": 0.0, "local_steps": 3, **changes}
    return FitConfig(checkpoint_dir=None if folder is None else str(folder), **options)


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize(
    "changes",
    [{}, {"n_init": 4}, {"safeguard": False}, {"init_mode": "random", "canonical_order": True}],
    ids=["plain", "restarts", "unguarded", "random"],
)
def test_it_goes_on_where_it_stopped(frame, tmp_path, told, stop, changes):
    whole = fit(frame, config_of(None, **changes))
    with stopped_after(stop):
        fit(frame, config_of(tmp_path, **changes))
    (folder,) = tmp_path.iterdir()
    kept = [f"round-{number:06d}.state" for number in (stop - 1, stop) if number]
    assert sorted(path.name for path in folder.glob("[!.]*")) == kept
    result = fit(frame, config_of(tmp_path, **changes))
    assert any(f"resumed after round {stop}" in text for text in told())
    assert result.record.resumed_round == stop and whole.record.resumed_round == 0
    assert result.centers.tobytes() == whole.centers.tobytes()
    assert result.record.inertia == whole.record.inertia
    assert result.record.restarts == whole.record.restarts
    assert [row.inertia for row in result.record.rounds] == [
        row.inertia for row in whole.record.rounds
    ]
    assert list(tmp_path.iterdir()) == [], "nothing is left after a fit that succeeded"


def test_without_a_seed_it_takes_the_checkpoints(frame, tmp_path):
    drawn = config_of(tmp_path, seed=11, seed_given=False)
    with stopped_after(2):
        fit(frame, drawn)
    result = fit(frame, replace(drawn, seed=12))
    assert result.record.seed == 11 and result.record.resumed_round == 2
    whole = fit(frame, config_of(None, seed=11))
    assert result.centers.tobytes() == whole.centers.tobytes()


def test_reseeded_clusters(spark, tmp_path):
    x = blobs()
    start = np.concatenate([x[:4], [[1e5] * 3, [-1e5] * 3]])
    changes = {"k": 6, "initial_centers": start, "init_mode": "given", "empty_clusters": "reseed"}
    rows = frame_of(spark, split(x, 4))
    whole = fit(rows, config_of(None, **changes))
    with stopped_after(1):
        fit(rows, config_of(tmp_path, **changes))
    result = fit(rows, config_of(tmp_path, **changes))
    assert result.record.resumed_round == 1 and result.record.rounds[0].reseeded == 2
    assert result.centers.tobytes() == whole.centers.tobytes()


@pytest.mark.parametrize("changes", [{"k": 8}, {"seed": 6}, {"tol": 0.5}])
def test_of_other_parameters(frame, tmp_path, told, changes):
    with stopped_after(2):
        fit(frame, config_of(tmp_path))
    result = fit(frame, config_of(tmp_path, **changes))
    assert result.record.resumed_round == 0
    (line,) = [text for text in told() if "is not used" in text]
    assert "\n" not in line
    assert result.centers.tobytes() == fit(frame, config_of(None, **changes)).centers.tobytes()
    assert len(list(tmp_path.iterdir())) == 1, "the other fit's checkpoint stays"
    assert fit(frame, config_of(tmp_path)).record.resumed_round == 2


@pytest.mark.parametrize(("rows", "m"), [(blobs(1), 4), (blobs()[:399], 4), (blobs(), 5)])
def test_of_other_data(spark, frame, tmp_path, told, rows, m):
    with stopped_after(2):
        fit(frame, config_of(tmp_path))
    assert fit(frame_of(spark, split(rows, m)), config_of(tmp_path)).record.resumed_round == 0
    assert sum("is not used" in text for text in told()) == 1


def test_several_fits_go_on_together(frame, tmp_path):
    alone = [config_of(None, k=k, n_init=2) for k in (4, 7)]
    configs = [replace(config, checkpoint_dir=str(tmp_path)) for config in alone]
    with stopped_after(2):
        fit_many(frame, configs)
    results = fit_many(frame, configs)
    assert max(result.record.resumed_round for result in results) == 2
    for result, config in zip(results, alone, strict=True):
        assert result.record.resumed_round  # 1 if its seeding took a pass more
        assert result.centers.tobytes() == fit(frame, config).centers.tobytes()


def test_a_place_that_cannot_be_written_to_is_an_error_before_any_job(spark, tmp_path):
    (tmp_path / "file").write_text("")

    def never(row):
        raise AssertionError("a job has run")

    rows = spark.sparkContext.parallelize([([1.0],)], 1).map(never)
    frame = spark.createDataFrame(rows, "features array<double>")
    for place in (tmp_path / "file" / "below", "nowhere://host/folder"):
        with pytest.raises(InvalidInputError, match="checkpointDir") as caught:
            fit(frame, config_of(place))
        assert "\n" not in str(caught.value)


def test_a_disk_that_fails_later_does_not_end_the_fit(frame, tmp_path, monkeypatch):
    from localkmeans_spark.spark_private import HadoopPath

    def full(self, data):
        raise OSError("no space left")

    monkeypatch.setattr(HadoopPath, "write", full)
    result = fit(frame, config_of(tmp_path))
    (warning,) = result.record.warnings
    assert "no more checkpoints" in warning and "no space left" in warning


def test_a_disk_that_fails_later_leaves_nothing_for_another_fit(frame, tmp_path, monkeypatch):
    from localkmeans_spark.spark_private import HadoopPath

    write, written = HadoopPath.write, []

    def full(self, target):
        raise OSError("no space left")

    def full_at_the_third(self, data):
        written.append(self)
        if len(written) == 3:
            monkeypatch.setattr(HadoopPath, "rename", full)
            with pytest.raises(OSError, match="no space left"):
                write(self, data)
            left = [path for path in tmp_path.glob("*/.round-*") if path.suffix != ".crc"]
            assert not left, "half of a file"
            raise OSError("no space left")
        write(self, data)

    monkeypatch.setattr(HadoopPath, "write", full_at_the_third)
    result = fit(frame, config_of(tmp_path))
    assert "no more checkpoints" in result.record.warnings[0]
    assert len(written) == 3, "it is not tried again"
    assert list(tmp_path.iterdir()) == [], "another fit would go on from here"


def damaged_files(data):
    """Yield names and contents of files that were damaged."""
    yield "empty", b""
    yield "cut", data[:-1]
    yield "cut short", data[:50]
    yield "longer", data + b"\0"
    for place in np.random.default_rng(0).integers(len(data), size=12):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(place) % 8
        yield f"bit {place}", bytes(flipped)
    yield "without arrays", pack(unpack(data)[0], {})


def test_damaged_files_are_set_aside(spark, frame, tmp_path, told):
    """The one before is taken up; each bad file is told of in one line, and ends no fit."""
    with stopped_after(3):
        fit(frame, config_of(tmp_path))
    first, last = sorted(tmp_path.glob("*/round-*.state"))
    good = last.read_bytes()
    config = config_of(tmp_path)
    with open_partitions(frame, config, [config.seed], [config.k]) as partitions:
        data = partitions.data
    for name, bad in damaged_files(good):
        last.write_bytes(bad)
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
        n_told = len(told())
        fits = [Fit(config, data)]
        open_checkpoint(spark, config).resume(fits, data)
        assert fits[0].resumed_round == 2, name
        warning, resumed = told()[n_told:]
        assert "cannot be used and is set aside" in warning and warning.isprintable(), name
        assert len(warning) < 500 and "after round 2" in resumed
    first.unlink()
    result = fit(frame, config)
    assert result.record.resumed_round == 0
    assert result.centers.tobytes() == fit(frame, config_of(None)).centers.tobytes()


def test_a_column_permuted_inside_its_partitions_is_other_data(spark, tmp_path, told):
    x = np.random.default_rng(0).integers(0, 10, size=(400, 3))
    parts, other = split(x, 4), split(x, 4)
    for part in other:
        part[:, 1] = np.random.default_rng(1).permutation(part[:, 1])
    with stopped_after(2):
        fit(frame_of(spark, parts), config_of(tmp_path))
    result = fit(frame_of(spark, other), config_of(tmp_path))
    assert result.record.resumed_round == 0
    assert any("is not used" in text for text in told())
    assert (
        result.centers.tobytes() == fit(frame_of(spark, other), config_of(None)).centers.tobytes()
    )
