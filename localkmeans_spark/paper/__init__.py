"""The paper's model, algorithm and quantities, measured step by step on Spark.

``mixture`` makes data, ``machines`` is what a machine does, ``trials`` runs many trials in the same
Spark jobs, ``quantities`` turns their counts into the paper's numbers, ``theory`` checks its
assumptions.
"""
