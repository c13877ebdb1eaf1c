"""A cell that waits for Spark is interrupted, in a kernel as JupyterLab starts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from kcontrol.pipeline.interrupts import CANCELLED
from tests.notebooks.kernels import sockets

pytestmark = [pytest.mark.slow, pytest.mark.spark]

STARTED, ANSWER_TIMEOUT_S = "a job has started", 240
OPEN = """
from threading import Thread
from kcontrol import Lab

lab = Lab(runs="runs")
spark = lab.spark()
status = spark.sparkContext.statusTracker()

def watch():
    while not status.getActiveJobsIds():
        pass
    print("a job has started", flush=True)
"""
ENDLESS = "Thread(target=watch).start()\nspark.sql('SELECT count(*) FROM journal a, journal b, journal c, journal d')"
CALLS = [".toPandas()", ".show()", ".collect()"]


class Cell(NamedTuple):
    """The outputs of a cell: its printed text, the text of its value, and the lines of its error."""

    printed: str
    value: str
    error: list[str]


def executed(manager: KernelManager, client: BlockingKernelClient, source: str) -> Cell:
    """Execute a cell; interrupt it when it prints that a job has started. Raises Empty if nothing comes for 240 s."""
    id = client.execute(source)
    printed, value, error = "", "", list[str]()
    while True:
        message: dict[str, Any] = client.get_iopub_msg(timeout=ANSWER_TIMEOUT_S)
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != id:
            continue
        if kind == "stream":
            printed += content["text"]
            if STARTED in content["text"]:
                manager.interrupt_kernel()
        elif kind == "execute_result":
            value = content["data"]["text/plain"]
        elif kind == "error":
            error = content["traceback"]
        elif kind == "status" and content["execution_state"] == "idle":
            return Cell(printed, value, error)


def interrupted(manager: KernelManager, client: BlockingKernelClient) -> dict[str, Cell]:
    assert executed(manager, client, OPEN).error == []
    found = {}
    for call in CALLS:
        found[call] = executed(manager, client, ENDLESS + call)
        found["jobs after " + call] = executed(manager, client, "list(status.getActiveJobsIds())")
        found["query after " + call] = executed(manager, client, "spark.sql('SELECT 41 + 1 AS n').toPandas().n[0].item()")
    return found


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cell]:
    """The outputs of three endless queries that are interrupted, and of the cells after each of them."""
    folder: Path = tmp_path_factory.mktemp("interrupted")
    with sockets() as listening:
        manager = KernelManager(kernel_name="python3", **listening)
        manager.start_kernel(cwd=str(folder))
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(ANSWER_TIMEOUT_S)
            return interrupted(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel()


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_query_ends_with_a_sentence(cells: dict[str, Cell], call: str) -> None:
    """An interrupted cell ends, and shows one sentence in place of two stack traces."""
    assert cells[call] == Cell(f"{STARTED}\n", "", [CANCELLED])


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_cancels_the_job(cells: dict[str, Cell], call: str) -> None:
    """After an interrupt Spark has no job."""
    assert cells["jobs after " + call].value == "[]"


@pytest.mark.parametrize("call", CALLS)
def test_the_session_is_open_after_an_interrupt(cells: dict[str, Cell], call: str) -> None:
    """The cell after an interrupted cell gets an answer from Spark."""
    assert cells["query after " + call] == Cell("", "42", [])
