"""
More rows than memory
=====================

The penalized L1 method needs only sums over rows, so the rows can stay in files.
:func:`classprior.engines.fit_blocks` reads Parquet files block by block and adds up the sums. Here
the same estimator is fitted to more and more files: the estimate settles, and the time grows in
proportion to the number of rows.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from classprior import PenalizedL1Prior
from classprior.datasets import make_overlapping_uniforms
from classprior.engines import fit_blocks

# %%
# There are 32 files with 20,000 unlabeled rows each, 70% of which are positive, and as many files
# with 2,000 known positives each.

folder = tempfile.TemporaryDirectory()
for number in range(32):
    X_positive, X_unlabeled = make_overlapping_uniforms(
        overlap=0.5, prior=0.7, n_positive=2_000, n_unlabeled=20_000, random_state=number
    )
    path = Path(folder.name)
    pd.DataFrame({"x": X_positive[:, 0]}).to_parquet(path / f"positive-{number:02}.parquet")
    pd.DataFrame({"x": X_unlabeled[:, 0]}).to_parquet(path / f"unlabeled-{number:02}.parquet")

# %%
# A list of files is all that ``fit_blocks`` needs; a folder or a pattern such as
# ``"unlabeled-*.parquet"`` works as well.

positive_files = sorted(path.glob("positive-*.parquet"))
unlabeled_files = sorted(path.glob("unlabeled-*.parquet"))
n_files = [1, 2, 4, 8, 16, 32]
estimates, seconds = [], []
for n in n_files:
    start = time.perf_counter()
    estimator = PenalizedL1Prior(n_centers=200, random_state=0)
    fit_blocks(estimator, positive_files[:n], unlabeled_files[:n])
    seconds.append(time.perf_counter() - start)
    estimates.append(estimator.prior_)
    print(f"{20_000 * n:7,} rows: estimate {estimator.prior_:.3f}")

# %%
# The answer is the same as from rows in memory.

in_memory = PenalizedL1Prior(n_centers=200, random_state=0).fit_samples(
    pd.concat(pd.read_parquet(file) for file in positive_files),
    pd.concat(pd.read_parquet(file) for file in unlabeled_files),
)
print(f"from files {estimates[-1]:.3f}, from memory {in_memory.prior_:.3f}")
folder.cleanup()

# %%
# How many seconds a fit takes depends on the machine; the straight line does not.

thousands = [20 * n for n in n_files]
fig, (top, bottom) = plt.subplots(2, 1, figsize=(6, 6), sharex=True, layout="constrained")
top.axhline(0.7, color="black", linestyle="--", linewidth=1, label="truth")
top.plot(thousands, estimates, "o-", label="estimate")
top.set(ylim=(0.6, 0.8), ylabel="share of positives")
top.legend()
bottom.plot(thousands, seconds, "o-", color="tab:green")
bottom.set(ylim=(0, None), xlabel="thousands of unlabeled rows", ylabel="seconds")

# %%
# Takeaway: pass files instead of arrays when there are too many rows. Up to 128 MiB of numbers
# are kept in memory between the two passes; larger samples are read again, block by block, and
# memory does not grow with them. :func:`classprior.estimate_prior` also takes files and adds an
# interval.
