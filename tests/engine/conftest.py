"""Fixtures of the engine's tests."""

import pytest
from pyspark import RDD


@pytest.fixture
def lose_blocks(spark, monkeypatch):
    """Return a function after which every other job of a fit finds the cached blocks gone.

    ``then`` is called each time they are gone.
    """
    jobs = []

    def start(then=lambda: None):
        aggregate = RDD.treeAggregate
        persistent = spark.sparkContext._jsc.getPersistentRDDs
        before = set(persistent().keySet())

        def without_cache(rdd, *args, **options):
            if len(jobs) % 2:  # the first job reads the data
                for number, cached in persistent().items():
                    if number not in before:
                        level = cached.getStorageLevel()
                        cached.unpersist(True)
                        cached.persist(level)
                then()
            jobs.append(rdd)
            return aggregate(rdd, *args, **options)

        monkeypatch.setattr(RDD, "treeAggregate", without_cache)
        return jobs

    return start
