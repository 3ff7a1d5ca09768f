"""Write ``fits.json`` anew: ``python -m tests.frozen.renew``."""

import json

from localkmeans_spark.cli.session import open_session
from tests.frozen.fits import FITS, result_of
from tests.frozen.test_frozen_fits import FILE, arithmetic

if __name__ == "__main__":
    with open_session(
        "frozen fits", master="local[2]", conf={"spark.ui.enabled": "false"}
    ) as spark:
        results = {name: result_of(spark, name) for name in FITS}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(it)}" for name, it in results.items())
    FILE.write_text(f'{{"arithmetic": {json.dumps(arithmetic())},\n"fits": {{\n{lines}\n}}}}\n')
