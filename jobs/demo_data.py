"""Write the demo's data: scikit-learn's handwritten digits, 1797 images of 8 x 8 pixels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def write_digits(target: Path) -> None:
    """Write the digits as an .npz file for ``jobs/fit.py``.

    Parameters
    ----------
    target : Path
        The file to write, with keys ``X`` of shape (1797, 64), float32, and ``y`` of shape
        (1797,), the digit shown; directories above it are made.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, X=digits.data.astype(np.float32), y=digits.target)


def main() -> None:
    """Write the file named on the command line."""
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".npz"):
        sys.exit("usage: python jobs/demo_data.py TARGET.npz")
    write_digits(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
