"""Fit several k and say which to take: ``localkmeans sweep``, or ``jobs/sweep.py``."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

from localkmeans_spark.cli.fit import for_table
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.outputs import Output
from localkmeans_spark.cli.progress import say, told_rounds
from localkmeans_spark.cli.rows import SETTINGS
from localkmeans_spark.cli.session import open_session
from localkmeans_spark.cli.tables import find_source, read_table
from localkmeans_spark.cli.text import json_line
from localkmeans_spark.estimator import LocalKMeans

OWNER = "sweep"
_SHOWN = ["k", "cost", "silhouette", "calinski_harabasz", "davies_bouldin", "agreement"]


def run(options: Options) -> None:
    """Fit, measure, and put table, picture and the best model in place at once."""
    asked = {name: value for name, value in options.params.items() if name != "k"}
    estimator = LocalKMeans(verbose=True, **asked)
    source = find_source(OWNER, options)
    with (
        Output(options) as output,
        open_session("localkmeans sweep", options.master, SETTINGS, options.debug) as spark,
    ):
        say(OWNER, f"reading {options.table or options.input}")
        table = read_table(OWNER, spark, source, options)
        for note in table.notes:
            say(OWNER, note)
        folder = output.begin(spark)
        if source.arrays is not None:  # it has the partitions that were asked for
            estimator.clear(estimator.getParam("numPartitions"))
        rows = for_table(estimator, table)
        with told_rounds(OWNER, estimator.getMaxIter()):
            sweep = estimator.sweep(rows, options.k or range(2, 21))
        sweep.models[sweep.best_k].write().save(folder.child("model").uri)
        folder.child("sweep.csv").write(sweep.table.to_csv(index=False).encode())
        told: dict[str, Any] = {"best_k": sweep.best_k, "reason": sweep.reason}
        listed = json.loads(sweep.table.to_json(orient="records", double_precision=15))
        folder.child("sweep.json").write(json.dumps({**told, "table": listed}, indent=1).encode())
        if find_spec("matplotlib") is None:
            say(OWNER, "no sweep.svg: it needs matplotlib (pip install matplotlib)")
        else:
            folder.child("sweep.svg").write(sweep.picture("svg"))
        told |= {"model": f"{output.final()}/model", "output": output.final()}
        output.publish("_SUCCESS", b"")
    print(sweep.table[_SHOWN].to_string(index=False, float_format=lambda value: f"{value:.5g}"))
    print(sweep.reason)
    print(json_line(told), flush=True)
