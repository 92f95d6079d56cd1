"""Print the minimum version of each runtime dependency in pyproject.toml, as pip constraints."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
runtime = (extras[name] for name in ("plot", "cli", "app", "fast", "dask", "duckdb"))
for requirement in sum(runtime, project["dependencies"]):
    if requirement.startswith("classprior["):
        continue  # an extra that includes another
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={version}")
