"""A fit that stopped and is started again: the same bits, or a word on why not."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit, fit_many

from .frames import frame_of, split


class StoppedError(Exception):
    """The driver's end, in the middle of a fit."""


def stop_after(number):
    def on_round(record):
        if record.round > number:
            raise StoppedError

    return on_round


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
    with pytest.raises(StoppedError):
        fit(frame, config_of(tmp_path, on_round=stop_after(stop), **changes))
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.glob("[!.]*")) == [f"round-{stop:06d}.npz"]
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
    with pytest.raises(StoppedError):
        fit(frame, replace(drawn, on_round=stop_after(2)))
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
    with pytest.raises(StoppedError):
        fit(rows, config_of(tmp_path, on_round=stop_after(1), **changes))
    result = fit(rows, config_of(tmp_path, **changes))
    assert result.record.resumed_round == 1 and result.record.rounds[0].reseeded == 2
    assert result.centers.tobytes() == whole.centers.tobytes()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"k": 8}, "k: 9, now 8"), ({"seed": 6}, "seed: 5, now 6"), ({"tol": 0.5}, "tol: 0.0, now")],
)
def test_of_other_parameters(frame, tmp_path, told, changes, reason):
    with pytest.raises(StoppedError):
        fit(frame, config_of(tmp_path, on_round=stop_after(2)))
    result = fit(frame, config_of(tmp_path, **changes))
    assert result.record.resumed_round == 0
    (line,) = [text for text in told() if "is not used" in text]
    assert reason in line and "\n" not in line
    assert result.centers.tobytes() == fit(frame, config_of(None, **changes)).centers.tobytes()
    assert len(list(tmp_path.iterdir())) == 1, "the other fit's checkpoint stays"
    assert fit(frame, config_of(tmp_path)).record.resumed_round == 2


@pytest.mark.parametrize(
    ("rows", "m", "reason"),
    [
        (blobs(1), 4, "other rows"),
        (blobs()[:399], 4, "n_points: 400, now 399"),
        (blobs(), 5, "n_partitions: 4, now 5"),
    ],
)
def test_of_other_data(spark, frame, tmp_path, told, rows, m, reason):
    with pytest.raises(StoppedError):
        fit(frame, config_of(tmp_path, on_round=stop_after(2)))
    assert fit(frame_of(spark, split(rows, m)), config_of(tmp_path)).record.resumed_round == 0
    (line,) = [text for text in told() if "is not used" in text]
    assert reason in line


def test_a_damaged_file_is_not_used(frame, tmp_path, told):
    with pytest.raises(StoppedError):
        fit(frame, config_of(tmp_path, on_round=stop_after(2)))
    (path,) = tmp_path.glob("*/round-*.npz")
    for damaged in (path.read_bytes()[:100], b""):
        path.write_bytes(damaged)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        with pytest.raises(StoppedError):
            fit(frame, config_of(tmp_path, on_round=stop_after(0)))
    assert sum("cannot be read" in text for text in told()) == 2


def test_several_fits_go_on_together(frame, tmp_path):
    alone = [config_of(None, k=k, n_init=2) for k in (4, 7)]
    configs = [replace(config, checkpoint_dir=str(tmp_path)) for config in alone]
    with pytest.raises(StoppedError):
        fit_many(frame, [replace(config, on_round=stop_after(2)) for config in configs])
    for result, config in zip(fit_many(frame, configs), alone, strict=True):
        assert result.record.resumed_round == 2
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
    from localkmeans_spark.engine.hadoop_folder import HadoopFolder

    def full(self, name, data):
        raise OSError("no space left")

    monkeypatch.setattr(HadoopFolder, "write", full)
    result = fit(frame, config_of(tmp_path))
    (warning,) = result.record.warnings
    assert "no more checkpoints" in warning and "no space left" in warning
