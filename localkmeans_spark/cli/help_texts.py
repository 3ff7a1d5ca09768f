"""What ``--help`` says of every command."""

SWEEP_HELP = """Fit several k over one copy of the rows, measure each, and say which to take: a
table, a picture, and the model of the best k, in a new directory."""
SWEEP_EPILOG = """\b
example:
  localkmeans sweep --input customers.csv --k 2-20 --output out/sweep"""
DESCRIBE_HELP = """Say what the clusters of a saved model are like on a table: sizes, what sets each
apart, typical and odd rows, as CSV tables and a page."""
DESCRIBE_EPILOG = """\b
example:
  localkmeans describe --model out/customers/model --input customers.csv --profile-cols region \\
      --output out/described"""
FIT_HELP = """Cluster the rows of a table into k clusters and write the model, every row's cluster,
the rounds and a report into a new directory."""
FIT_EPILOG = """\b
example, on a laptop:
  localkmeans fit --input customers.csv --k 8 --id-cols customer_id --output out/customers
example, on a cluster:
  spark-submit --master spark://host:7077 --py-files dist/localkmeans_spark.zip jobs/fit.py \\
      --input hdfs:///data/customers.parquet --k 8 --output hdfs:///out/customers
the same from a file (flags win over it):
  localkmeans fit --config conf/fit.toml --k 12

\b
A file given with --config holds the flags without their dashes, one a line:
  input = "customers.csv"
  k = 8
  feature-cols = ["age", "income"]
  safeguard = false"""
PREDICT_HELP = "Give every row of a table the cluster of its nearest center in a saved model."
PREDICT_EPILOG = """\b
example:
  localkmeans predict --model out/customers/model --input new.csv --output out/new"""
DIAGNOSE_HELP = """Say in plain words whether every partition holds its share of every cluster,
whether the clusters are far enough apart, and how many local steps suit."""
