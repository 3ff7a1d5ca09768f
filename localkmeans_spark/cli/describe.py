"""Describe the clusters of a model: ``localkmeans describe``, or ``jobs/describe.py``."""

from __future__ import annotations

from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.outputs import Output
from localkmeans_spark.cli.predict import check_model, load_model, with_features
from localkmeans_spark.cli.progress import say
from localkmeans_spark.cli.rows import SETTINGS
from localkmeans_spark.cli.session import open_session
from localkmeans_spark.cli.tables import find_source, read_table
from localkmeans_spark.cli.text import json_line, printable

OWNER = "describe"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Clusters</title><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #8886;
  white-space: nowrap; }
</style></head><body><h1>%s</h1>%s</body></html>
"""


def run(options: Options) -> None:
    """Describe, and put the tables and the page in place at once."""
    check_model(OWNER, options.model)
    source = find_source(OWNER, options)
    with (
        Output(options) as output,
        open_session("localkmeans describe", options.master, SETTINGS, options.debug) as spark,
    ):
        model = load_model(options)
        options = with_features(model, options)
        table = read_table(OWNER, spark, source, options, model.numFeatures)
        if table.features_col is not None:
            model.setFeaturesCol(table.features_col)
        else:
            model.setFeaturesCols(list(table.feature_cols))
        folder = output.begin(spark)
        say(OWNER, f"describing {options.table or options.input}")
        found = model.describe(table.frame, list(options.profile_cols or ()))
        for name in ("clusters", "features", "rows", "profile"):
            folder.child(f"{name}.csv").write(getattr(found, name).to_csv(index=False).encode())
        page = _PAGE % (f"{len(model.centers)} clusters", found.to_html())
        folder.child("description.html").write(page.encode())
        output.publish("_SUCCESS", b"")
    print(printable(repr(found).replace("\n", "; ")).replace("; cluster", "\ncluster"))
    told = {"k": len(model.centers), "model": options.model, "output": output.final()}
    print(json_line(told), flush=True)
