"""Put the results of the paper's experiments into docs/reproduction.md, with their figures.

    python experiments/reproduction.py [--out build/reproduce]

Runs after duplessis2017_uniforms.py, duplessis2017_mnist.py and duplessis2017_rates.py, as
``make reproduce`` does.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from freshness import record
from harness import PARTS, replace_between

ROOT = Path(__file__).parents[1]
PAGE, IMAGES = ROOT / "docs/reproduction.md", ROOT / "docs/images/reproduction"
SCRIPT = "experiments/reproduction.py"


def main() -> None:
    """Replace the results on the page."""
    parser = argparse.ArgumentParser(description="Results of the paper's experiments, on a page.")
    parser.add_argument("--out", type=Path, default=Path("build/reproduce"))
    out = parser.parse_args().out
    files = [out / f"duplessis2017_{part}.md" for part in PARTS]
    if missing := [str(file) for file in files if not file.exists()]:
        parser.error(f"there is no {missing[0]}; make reproduce runs all experiments")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    if "This is not MNIST" in text:
        parser.error("the experiment on MNIST was run on other images")
    for name in set(re.findall(r"\]\((duplessis2017_[\w-]+\.png)\)", text)):
        shutil.copy(out / name, IMAGES / name)
    text = text.replace(
        "](duplessis2017_", f"]({IMAGES.relative_to(PAGE.parent).as_posix()}/duplessis2017_"
    )
    replace_between(PAGE, SCRIPT, f"\n{text.strip()}\n")
    record(SCRIPT)


if __name__ == "__main__":
    main()
