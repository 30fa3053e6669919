"""Seconds and memory for a long table of 50 million rows in Parquet.

    python -m benchmarks.reading [ROWS]

The labels are stored as text in every row, without a dictionary, and the rows are shuffled: about
half a gigabyte compressed, and 2.5 gigabytes of text.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_QUESTIONS, N_TRIALS = 50_000, 10


def write(path: Path, n_rows: int) -> None:
    """Write one row group for each system."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    names = pa.array([f"benchmark-question-{i:06d}" for i in range(N_QUESTIONS)])
    cell = np.arange(N_QUESTIONS * N_TRIALS)
    writer = None
    for system in range(n_rows // len(cell)):
        order = rng.permutation(cell)
        table = pa.table(
            {
                "model_name": pa.array([f"organisation/model-{system:03d}"] * len(cell)),
                "question_id": names.take(pa.array(order // N_TRIALS)),
                "trial": order % N_TRIALS,
                "score": rng.integers(0, 2, len(cell)),
            }
        )
        writer = writer or parquet.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def read(path: Path) -> None:
    """Read the table in this process and print what it took."""
    from bayesrank import read_responses

    start = time.perf_counter()
    data = read_responses(path)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{data}")
    print(
        f"{path.stat().st_size / 1e9:.2f} GB: {seconds:.0f} s, {time.process_time():.0f} s of CPU"
    )
    print(f"{memory.ru_maxrss / 1e6:.1f} GB of memory at most")


def main() -> None:
    """Write the table and read it in a process of its own."""
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_file():
        read(Path(sys.argv[1]))
        return
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.parquet"
        write(path, n_rows)
        subprocess.run([sys.executable, "-m", "benchmarks.reading", str(path)], check=True)


if __name__ == "__main__":
    main()
