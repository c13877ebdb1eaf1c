"""A standalone Spark cluster: the tables, sweep and search of one machine, kcontrol on the executors, and a killed worker."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import cluster as spark_clusters
from kcontrol.pipeline import gateway, pipeline
from kcontrol.pipeline.logs import log_tables
from kcontrol.search.museum import MUSEUM
from tests.infra.processes import python
from tests.pipeline.few_tables import CODE, TABLES, few_tables
from tests.pipeline.log_rows import rows_of
from tests.pipeline.random_runs import random_run
from tests.pipeline.spark_cluster import SparkCluster, Status, kill_in_a_task, spark_cluster, wait_until
from tests.pipeline.test_logs import AT, LINE, TRACE, moved

COMMAND = "import sys; from kcontrol.cli import main; sys.exit(main())"
# The command opens its session by a function that first shows what the executors of this session do.
ON_EXECUTORS = f"""{CODE}
import json, sys
from kcontrol.cli import main
from kcontrol.pipeline import gateway, pipeline_report

def records_of_a_cluster(seed):
    import kcontrol
    from kcontrol import Lab
    return kcontrol.__file__, len(Lab(seed=seed, topics={{"t": [[1, 2]]}}, runs=None).kill(1).run().records)

def session(master):
    spark = gateway.spark_session(master)
    print(json.dumps(spark.sparkContext.parallelize([1, 2], 2).map(records_of_a_cluster).collect()), flush=True)
    return spark

pipeline_report.spark_session = session
sys.exit(main())
"""
# The command opens its session by a function that adds the page with Spark's status, and prints the page's address.
WITH_STATUS = f"""{CODE}
import sys
from kcontrol.cli import main
from kcontrol.pipeline import gateway, pipeline_report

def session(master):
    spark = gateway.spark_session(master, spark__ui__enabled="true", spark__ui__port="0", spark__ui__liveUpdate__period="0")
    print(spark.sparkContext.uiWebUrl + "/api/v1/applications/" + spark.sparkContext.applicationId, flush=True)
    return spark

pipeline_report.spark_session = session
sys.exit(main())
"""
SEARCHES = """
import json, sys
from kcontrol import rules
from kcontrol.pipeline.gateway import spark_session

found = rules.hunt("fenced_writes", spark=spark_session(sys.argv[-1]))
print(json.dumps([found.states, found.actions, found.engine]), flush=True)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master with two workers; all processes end with the last test of the module, which kills a worker."""
    with spark_cluster(tmp_path_factory.mktemp("cluster") / "cluster") as started:
        yield started


def command(code: str, cluster: SparkCluster, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start Python with this code and these arguments, and the configuration of the cluster; kill it in the end."""
    environment = os.environ | {"SPARK_CONF_DIR": str(cluster.configuration)}
    return python(code, *arguments, "--master", cluster.address, env=environment, stderr=subprocess.PIPE)


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_gets_the_package_and_writes_the_tables_of_logs(spark: Any, cluster: SparkCluster, tmp_path: Path) -> None:
    """Executors simulate clusters with the package from an archive; `pipeline logs --master` writes the tables of one machine."""
    logs, local, out = tmp_path / "logs", tmp_path / "local", tmp_path / "out"
    logs.mkdir()
    (logs / "server.log").write_text("\n".join(["no record", LINE, *TRACE, *(moved(n) for n in range(50))]) + "\n")
    (logs / "state-change.log").write_text(f"{moved(3)}\n[{AT}] INFO of another program (org.other.Thing)\n")
    expected = log_tables.write_logs(spark, [logs], local)
    with command(ON_EXECUTORS, cluster, "pipeline", "logs", str(logs), f"--out={out}") as process:
        printed, problems = process.communicate()
    assert process.returncode == 0, problems
    places = json.loads(printed.splitlines()[0])
    assert {Path(place).parts[-3:] for place, _ in places} == {("kcontrol.zip", "kcontrol", "__init__.py")}
    assert {count for _, count in places} == {
        len(Lab(seed=seed, topics={"t": [[1, 2]]}, runs=None).kill(1).run().records) for seed in (1, 2)
    }
    assert expected.facts == 51 and expected.rejected == 1
    for table in log_tables.TABLES:
        assert ordered(rows_of(out, table)) == ordered(rows_of(local, table)) != []


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_gives_the_sweep_and_the_search_of_one_machine(cluster: SparkCluster, tmp_path: Path) -> None:
    """`kcontrol sweep --master` writes the tables of child processes; a search on the cluster finds the run of one process."""
    out = tmp_path / "out"
    arguments = ["sweep", "random deaths", "--replication", "2", "--session", "6000", "--runs", "4", "--out", str(out)]
    with command(SEARCHES + COMMAND, cluster, *arguments) as process:
        printed, problems = process.communicate()
    assert process.returncode == 0, problems
    expected: Any = MUSEUM[0].search()
    states, actions, engine = json.loads(printed.splitlines()[0])
    assert (states, engine) == (expected.states, "quick engine on Spark")
    assert actions == json.loads(json.dumps(expected.actions))
    alone = Lab.sweep("random deaths", 2, False, 6_000, 4)
    for name in ("cells", "runs", "failed"):
        pd.testing.assert_frame_equal(pd.read_parquet(out / name), pd.DataFrame(getattr(alone, name)), check_dtype=False)


@pytest.mark.spark
@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_table_of_runs(spark: Any, cluster: SparkCluster, tmp_path: Path) -> None:
    """`pipeline runs --master` writes the tables of one machine, row by row, although a worker is killed during a task."""
    # Spark's own status shows that a task of this worker was lost, so the worker was not killed between two jobs.
    runs, local, out = tmp_path / "runs", tmp_path / "local", tmp_path / "out"
    runs.mkdir()
    for seed in (1, 5):
        random_run(seed).save(runs / f"2026010{seed}-100000-simulated.jsonl")
    with few_tables():
        pipeline.write_runs(spark, [runs], local)
    earlier = len(cluster.state()["completedapps"])
    with command(WITH_STATUS, cluster, "pipeline", "runs", str(runs), "--out", str(out)) as process:
        assert process.stdout is not None
        status = Status(process.stdout.readline().strip())
        assert any("table 2 of " in line for line in process.stdout)
        executor = kill_in_a_task(cluster, 0, status)
        assert "ExecutorLostFailure" in wait_until(lambda: status.lost(executor))[0]
        printed, problems = process.communicate()
    assert process.returncode == 0 and f"table {len(TABLES)} of " in printed, problems
    wait_until(lambda: cluster.alive() == 1)
    wait_until(lambda: not cluster.state()["activeapps"])
    assert len(cluster.state()["completedapps"]) == earlier + 1
    assert max(cluster.state()["completedapps"], key=lambda app: app["starttime"])["state"] == "FINISHED"
    expected = {name: ordered(rows_of(local, name)) for name in TABLES}
    assert {name: ordered(rows_of(out, name)) for name in TABLES} == expected
    assert all(expected.values())


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    ("master", "words"),
    [("yarn", "write spark://HOST:PORT; for YARN and Kubernetes"), ("spark://", "write spark://HOST:PORT"),
     ("spark://a:b", "write spark://HOST:PORT"), ("", "write spark://HOST:PORT"),
     ("spark://127.0.0.1:99999", "No Spark master answers at spark://127.0.0.1:99999")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["runs", "logs"])
def test_an_address_that_is_no_master_is_refused(tmp_path: Path, name: str, master: str, words: str) -> None:
    """Any other text than the address of a master is refused in one sentence with exit status 1, before a folder is made."""
    (tmp_path / "server.log").write_text(LINE)
    done = CliRunner().invoke(app, ["pipeline", name, str(tmp_path), "--out", str(tmp_path / "out"), "--master", master])
    assert done.exit_code == 1 and isinstance(done.exception, UserError) and words in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_master_that_does_not_run_is_refused(tmp_path: Path) -> None:
    """A port on which no process listens is refused in one sentence."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UserError, match=f"No Spark master answers at {master}: start the master"):
            spark_clusters.check_master(master)


def test_a_sweep_on_a_master_that_does_not_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kcontrol sweep --master` plays no run without a master at this address: exit status 1 and one sentence."""
    monkeypatch.setattr(gateway, "_check_open_session", lambda master: None)  # earlier tests of this process have a session
    done = CliRunner().invoke(app, ["sweep", "random deaths", "--runs", "1", "--master", "spark://127.0.0.1:99999"])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert "No Spark master answers at spark://127.0.0.1:99999" in str(done.exception) and done.output == ""


def test_only_a_cluster_elsewhere_needs_an_address_of_this_machine() -> None:
    """A driver listens on loopback without a cluster and for a master on loopback, and not for a master on another machine."""
    assert all(map(spark_clusters.is_on_loopback, ("local[2]", "spark://127.0.0.1:7077", "spark://localhost:7077")))
    assert not any(map(spark_clusters.is_on_loopback, ("spark://10.1.2.3:7077", "spark://local.example.org:7077")))
