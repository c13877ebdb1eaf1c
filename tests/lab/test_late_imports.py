"""pandas is imported at the first table, and a lab without pandas has everything but tables."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_TABLES = """
import sys
{before}
from kcontrol import Lab, exercises, rules
lab = Lab(brokers=3, topics={{"t": [[1, 2], [2, 3]]}}, runs=None)
lab.run().kill(1).run()
assert lab._repr_mimebundle_() and lab.diagram("partition") and lab.why("controller") and repr(lab)
lab.branch().start(1).run(); lab.rewind(-9).why("leader of t-0")
{after}
"""


def run(before: str, after: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT_TABLES.format(before=before, after=after)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


def test_a_run_and_its_pictures_import_no_pandas() -> None:
    """A lab, its viewer, a diagram, `why` and a branch import no pandas; the first table does."""
    done = run("", 'assert "pandas" not in sys.modules\nlab.partitions()\nassert "pandas" in sys.modules')
    assert done.returncode == 0, done.stderr


TABLES = """
for table in (lab.partitions, lab.tables.requests, lab.tables.reaction_grid, lab.journal):
    try:
        table()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_table_without_pandas_is_refused() -> None:
    """Without pandas the same lab works, and a table raises UserError, which says what to install."""
    done = run('sys.modules["pandas"] = None', TABLES + "lab.partitions()")
    said = "A table needs pandas; pandas is not installed: `pip install pandas` adds it.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, f"UserError {said}" * 4, f"kcontrol: {said}")
