"""
When known positives are not typical
====================================

Some kinds of frauds are caught more often than others. The default method then undercounts the
kinds that are seldom caught, and its upper bound fails, because both hold only if known positives
are typical of all positives. A test looks for such bias, and the method ``subtypes`` allows for it
where the test sees it.
"""

import matplotlib.pyplot as plt
import numpy as np

from classprior import estimate_prior

# %%
# There are two kinds of frauds, equally many of each among the 3,000 unchecked payments: 600 in
# all. Among the 800 known ones, the first kind is up to sixteen times as frequent as the second.


def draw(ratio: int) -> list[np.ndarray]:
    """Return known frauds and unchecked payments, in two columns."""
    rng = np.random.default_rng(0)
    second = round(800 / (1 + ratio))
    known = np.repeat([[0, 7], [7, 0]], [800 - second, second], axis=0)
    pile = np.repeat([[0, 7], [7, 0], [0, 0]], [300, 300, 2400], axis=0)
    return [rows + rng.normal(size=rows.shape) for rows in (known, pile)]


ratios = [1, 2, 4, 8, 16]
found = {
    method: [
        estimate_prior(*draw(ratio), method=method, n_repeats=1, random_state=0) for ratio in ratios
    ]
    for method in ("auto", "subtypes")
}
print(found["auto"][-1].answer)
print(found["subtypes"][-1].answer)

# %%
# The triangles are the upper bounds of ``auto``; filled ones are called certified. If labels favor
# one kind, they are below the truth.

fig, ax = plt.subplots(layout="constrained")
for (method, estimates), marker, shift in zip(found.items(), "os", (0.97, 1.03), strict=True):
    low, prior, high = 100 * np.array([(e.low, e.prior, e.high) for e in estimates]).T
    where = shift * np.array(ratios)
    ax.errorbar(where, prior, [prior - low, high - prior], fmt=marker, capsize=4, label=method)
for ratio, e in zip(ratios, found["auto"], strict=True):
    fill = "tab:red" if e.bound_is_exact else "none"
    ax.plot(ratio, 100 * e.upper_bound, "v", color="tab:red", markerfacecolor=fill)
ax.axhline(20, color="black", linestyle="--", linewidth=1, label="truth")
ax.set(xscale="log", ylim=(0, None))
ax.set_xticks(ratios, [str(ratio) for ratio in ratios])
ax.minorticks_off()
ax.set(xlabel="how often the first kind is labeled, relative to the second")
ax.set(ylabel="share of frauds (%)")
ax.legend()

# %%
# Takeaway: where some kinds of positives may be labeled more often than others, compare ``auto``
# with ``subtypes``. If they disagree, only looking at rows can settle it. Sums over clusters are a
# little too low here, which the upper ends of their intervals allow for.
