"""A Spark whose Java has no heap memory left, or has ended, is one sentence; the former tables stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from kcontrol import Lab, cli
from kcontrol.core.errors import UserError
from kcontrol.pipeline import gateway, pipeline, pipeline_report

LARGER = "set KCONTROL_SPARK_HEAP to a larger size, such as 2g, or name fewer files."
HEAP_ERROR = "An error occurred while calling o1.parquet.\n: java.lang.OutOfMemoryError: Java heap space\n\tat java.base"


class Ended:
    """A gateway whose Java has ended with an exit status, or runs (None)."""

    heap = "512m"

    def __init__(self, status: int | None) -> None:
        self.status = status

    def ended(self) -> int | None:
        return self.status


class WithoutText(Exception):
    """An error of py4j after the end of Java: its text cannot be read."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


@pytest.mark.parametrize(
    ("problem", "status", "words"),
    [(Py4JError(HEAP_ERROR), None, f"Spark's memory of 512m is too small for these files, and no table was replaced: {LARGER}"),
     (WithoutText(), 52, f"Spark's memory of 512m is too small for these files, and no table was replaced: {LARGER}"),
     (ConnectionRefusedError(111, "refused"), 52, LARGER), (Py4JNetworkError("Answer from Java side is empty"), 52, LARGER),
     (ConnectionRefusedError(111, "refused"), 137, "Spark's Java ended too early (exit status 137), and no table was replaced")],
)  # fmt: skip
def test_a_loss_of_spark_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, status: int | None, words: str
) -> None:
    """Each error that Spark's Java leaves becomes a sentence; the unfinished tables are deleted, and no others."""
    monkeypatch.setattr(gateway, "_gateway", Ended(status))
    pipeline.claim(tmp_path)
    for name in (pipeline.NEW, "journal"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError) as raised, pipeline.sentences(tmp_path):
        raise problem
    assert words in str(raised.value) and "\n" not in str(raised.value)
    assert not (tmp_path / pipeline.NEW).exists() and (tmp_path / "journal").exists()


@pytest.mark.parametrize("reason", [
    "java.lang.OutOfMemoryError: Java heap space",
    "ExecutorLostFailure (executor 4 exited caused by one of the running tasks) Reason: Command exited with code 52",
])  # fmt: skip
def test_the_memory_of_an_executor_has_a_setting_of_its_own(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """If an executor of a cluster has no memory left, the sentence names the executor's setting, not the driver's."""
    # Source: the text of a standalone cluster of Spark 4.3 with executors of 512 MB.
    monkeypatch.setattr(gateway, "_gateway", Ended(None))
    lost = f"Lost task 0.4 in stage 0.0 (TID 8) (127.0.0.1 executor 4): {reason}"
    problem = Py4JError(f"An error occurred.\n: org.apache.spark.SparkException: Job aborted due to stage failure: {lost}\n\n")
    assert str(gateway.loss(problem)) == (
        "The memory of Spark's executors is too small for these files, and no table was replaced: write a larger "
        "spark.executor.memory than the default 1g, such as 2g, into spark-defaults.conf (docs/spark-cluster.md), or name fewer "
        "files."
    )


def test_the_memory_of_a_local_task_is_that_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster the driver runs the tasks, so the sentence names the driver's setting."""
    monkeypatch.setattr(gateway, "_gateway", Ended(None))
    lost = "Lost task 0.0 in stage 0.0 (TID 1) (127.0.0.1 executor driver): java.lang.OutOfMemoryError: Java heap space"
    assert str(gateway.loss(Py4JError(lost))).endswith(LARGER)


def test_another_error_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Java that runs, an error of a query is raised as it is."""
    monkeypatch.setattr(gateway, "_gateway", Ended(None))
    with pytest.raises(Py4JError, match="a query"), pipeline.sentences(tmp_path):
        raise Py4JError("a query")


def test_the_command_prints_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`pipeline runs` without heap memory prints one line on stderr, ends with status 1, and leaves no folder of tables."""
    Lab(runs=None).save(tmp_path / "run.jsonl")

    def fails(*_: Any) -> Any:
        (tmp_path / "out" / pipeline.NEW).mkdir()
        raise Py4JError(HEAP_ERROR)

    monkeypatch.setattr(pipeline, "_write", fails)
    monkeypatch.setattr(pipeline_report, "spark_session", lambda _: None)
    monkeypatch.setattr(pipeline_report, "stop_spark", lambda: None)
    monkeypatch.setattr("sys.argv", ["kcontrol", "pipeline", "runs", str(tmp_path / "run.jsonl"), "--out", str(tmp_path / "out")])
    assert cli.main() == 1
    said = capsys.readouterr()
    assert said.err.startswith("kcontrol: Spark's memory") and said.err.endswith(f"{LARGER}\n") and said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", ["2", "2gb", "100m", "-1g", "much"])
def test_a_wrong_size_of_the_heap_is_refused(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """A text that is no size, and a size with which Spark does not start, is one sentence with the least size."""
    monkeypatch.setenv(gateway.HEAP, size)
    with pytest.raises(UserError) as raised:
        gateway.heap_size()
    assert str(raised.value) == f"KCONTROL_SPARK_HEAP is '{size}': write a size of at least 512m, such as 2g."


def test_the_size_of_the_heap_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heap has 512 MB, or the size that the environment variable names, as an option of Java."""
    monkeypatch.delenv(gateway.HEAP, raising=False)
    assert gateway.heap_size() == "512m"
    monkeypatch.setenv(gateway.HEAP, "3g")
    java = gateway.Java(Path("java"), 21, "here")
    assert "-Xmx3g" in gateway.Gateway._command(java, Path("home"), gateway.heap_size(), Path("folder"))


@pytest.mark.parametrize("kind", ["AnalysisException", "ParseException"])
def test_an_error_in_sql_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A notebook shows an error about SQL as the first line of Spark's text, without a traceback and without the plan."""
    errors = pytest.importorskip("pyspark.errors")
    # At its end the test takes back what `shorten_sql_errors` sets, so that the next test sees whether a session sets this.
    monkeypatch.setattr(errors.AnalysisException, "_render_traceback_", None, raising=False)
    gateway.shorten_sql_errors()
    problem = getattr(errors, kind)("\n[UNRESOLVED] `brokr` cannot be resolved.\n'Project ['brokr]")
    assert problem._render_traceback_() == ["[UNRESOLVED] `brokr` cannot be resolved."]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("query", ["SELECT brokr FROM range(1)", "SELEC broker"])
def test_a_notebook_shows_an_error_of_a_query_as_one_line(spark: Any, capsys: Any, query: str) -> None:
    """IPython prints one line for a query with a wrong column, and for a text that is no query, in a session of kcontrol."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns["spark"] = spark
    shell.run_cell(f"spark.sql({query!r})")
    said = capsys.readouterr()
    assert said.out.count("\n") == 1 and said.out.startswith("[") and said.err == ""
