"""The sample answer and its picture, by one run: python docs/pictures/readme.py.

Replaces the answer in README, on the landing page and in the tutorial, and the picture in
docs/images, for light and dark pages. The picture carries its answer, so that a test can compare.
"""

import sys
from pathlib import Path

from matplotlib import rcParams, style
from matplotlib.figure import Figure

from classprior import estimate_prior
from classprior.datasets import make_transactions
from classprior.plotting import ScoreDisplay

sys.path.append(str(Path(__file__).parents[2] / "experiments"))
from freshness import record
from harness import replace_between

ROOT = Path(__file__).parents[2]
SCRIPT = "docs/pictures/readme.py"
SHORT = ("README.md", "docs/index.md")
WHOLE = "docs/start/python.md"
LIGHT, DARK = ROOT / "docs/images/scores.png", ROOT / "docs/images/scores-dark.png"


def answer():
    return estimate_prior(*make_transactions(random_state=0), random_state=0)


def texts(found):
    """Return the whole answer, and its part without notes."""
    whole = str(found)
    return whole, whole.split("\n\nColumns left out")[0]


def draw(found, path, look):
    with style.context(look):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        ax = figure.subplots()
        display = ScoreDisplay.from_estimator(found, ax=ax)
        display.rest_.set_edgecolor(rcParams["axes.edgecolor"])
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="upper right")
        text = texts(found)[1]
        figure.savefig(path, dpi=120, transparent=True, metadata={"Description": text})


def main():
    found = answer()
    whole, short = texts(found)
    for page in SHORT:
        replace_between(ROOT / page, SCRIPT, f"\n```text\n{short}\n```\n")
    replace_between(ROOT / WHOLE, SCRIPT, f"\n```text\n{whole}\n```\n")
    draw(found, LIGHT, "default")
    draw(found, DARK, "dark_background")
    record(SCRIPT)


if __name__ == "__main__":
    main()
