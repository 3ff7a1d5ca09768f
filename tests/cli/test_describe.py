"""localkmeans describe: tables, page, words on stdout."""

from __future__ import annotations

import numpy as np
import pandas as pd

from localkmeans_spark import LocalKMeansModel


def test_tables_and_page(spark, run, tmp_path):
    table = pd.DataFrame({"age": [1.0, 2.0, 9.0, 8.0], "visits": [0.0, 0.0, 5.0, 6.0]})
    table["region"] = ["east", "east", "<b>", "west"]
    table.to_csv(tmp_path / "people.csv", index=False)
    model = LocalKMeansModel(np.array([[1.5, 0.0], [8.5, 5.5]]))
    model.setFeaturesCols(["age", "visits"]).write().save(str(tmp_path / "model"))
    out = tmp_path / "out"
    told = run(
        "describe", "--model", tmp_path / "model", "--input", tmp_path / "people.csv",
        "--profile-cols", "region", "--output", out,
    )  # fmt: skip
    assert told.status == 0, told
    assert (
        told.lines[0] == "cluster 0: low age, low visits" or "low visits, low age" in told.lines[0]
    )
    assert list(pd.read_csv(out / "clusters.csv")["size"]) == [2, 2]
    assert set(pd.read_csv(out / "profile.csv")["value"]) == {"east", "<b>", "west"}
    page = (out / "description.html").read_text()
    assert "Cluster 1: high" in page and "<b>" not in page
