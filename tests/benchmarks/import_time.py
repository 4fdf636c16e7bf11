"""What `import statecast` costs beside importing what it depends on.

    python tests/benchmarks/import_time.py

Each figure is the processor time of one fresh interpreter; the two kinds alternate, so that a noisy machine is unfair to
neither. All bytecode is compiled before the first figure. The dependencies are what the package's own modules import from
other packages.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

# What the modules behind `import statecast` import, and no more of it.
DEPENDENCIES = "ag_ui.core jsonpatch pydantic sse_starlette starlette.applications typing_extensions"


def seconds(names: str, cache: str) -> float:
    """The processor time that these imports take in a fresh interpreter."""
    code = (
        "import time\nstart = time.process_time()\n"
        + "".join(f"import {name}\n" for name in names.split())
        + "print(time.process_time() - start)"
    )
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env=env)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as cache:
        seconds("statecast", cache)  # compiles what both kinds import
        pairs = [(seconds(DEPENDENCIES, cache), seconds("statecast", cache)) for _ in range(rounds)]
    base, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for other, one in pairs)
    print(f"dependencies  {base * 1e3:6.0f} ms")
    print(f"statecast     {whole * 1e3:6.0f} ms")
    print(f"ratio         {ratio:6.2f}     (median of {rounds} pairs)")


if __name__ == "__main__":
    main()
