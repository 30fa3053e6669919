"""How many files of the package run from a table of outcomes to a leaderboard.

    python -m benchmarks.files

Whoever changes a method has to read about as many. Files of which only definitions run, as they are
imported, do not count.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_NUTS = 'backend="nuts", target="population", draws=20, tune=50'
CALLS = {
    "standardized_accuracy": "",
    "bradley_terry, map": '"bradley_terry", backend="map"',
    "rasch, map": '"rasch", backend="map"',
    "irt_2pl, nuts, population": f'"irt_2pl", {_NUTS}',
    "borda": '"borda"',
    "pass_at_k": '"pass_at_k", k=2',
}

# A profile hook of the interpreter sees every call, also those in threads that start later.
SCRIPT = """
import inspect, sys, threading, warnings
from pathlib import Path
import bayesrank as br
warnings.simplefilter("ignore")
root, seen = Path(br.__file__).parent, set()
models = Path(br.models.__file__).parent
def hook(frame, event, argument):
    # Bodies of modules and classes run as they are imported, and are not optimised.
    if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        seen.add(frame.f_code.co_filename)
threading.setprofile(hook)
sys.setprofile(hook)
br.leaderboard(br.rank(br.read_data({path!r}), {call}))
sys.setprofile(None)
ours = sorted(name for name in seen if Path(name).is_relative_to(root)
              or Path(name).is_relative_to(models))
print("\\n".join(ours))
"""


def executed(path: Path, call: str) -> list[str]:
    """Return the files of which a function runs, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(path=str(path), call=call)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def main() -> None:
    """Print the number of files for each call; with -v, the files."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.csv"
        rows = (
            f"s{system},q{question},{trial},{int(rng.random() < 0.3 + 0.1 * system)}"
            for system in range(4)
            for question in range(12)
            for trial in range(3)
        )
        path.write_text("system,question,trial,outcome\n" + "\n".join(rows), encoding="utf-8")
        for name, call in CALLS.items():
            files = executed(path, call)
            print(f"{name:28} {len(files):3}")
            if "-v" in sys.argv[1:]:
                print(*(f"    {each}" for each in files), sep="\n")


if __name__ == "__main__":
    main()
