"""Two ways in which the event thread moves partitions, and when it comes to them: one row for each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from kcontrol.controller import reassignment as phases
from kcontrol.controller import reassignment_1_1 as steps
from kcontrol.controller import reassignment_requests as requests
from kcontrol.controller.context import ControllerContext
from kcontrol.effects import Handler
from kcontrol.events import PartitionReassignmentIsrChange, ZkPartitionReassignment


class Way(NamedTuple):
    """What is done at failover before and after the machines start, and about a request, a changed ISR, brokers that come up."""

    learn: Callable[[ControllerContext], Handler]
    take_up: Callable[[ControllerContext], Handler]
    requested: Callable[[ControllerContext, ZkPartitionReassignment], Handler]
    isr_change: Callable[[ControllerContext, PartitionReassignmentIsrChange], Handler]
    resume_on: Callable[[ControllerContext, Collection[int]], Handler]


def _nothing(ctx: ControllerContext) -> Handler:
    yield from ()


WAYS = {
    "twelve steps": Way(
        steps.learn, steps.take_up, steps.zk_partition_reassignment, steps.partition_reassignment_isr_change, steps.resume_on
    ),
    "phases": Way(
        _nothing,
        requests.initialize_partition_reassignments,
        requests.zk_partition_reassignment,
        phases.partition_reassignment_isr_change,
        phases.resume_on,
    ),
}


def learn(ctx: ControllerContext) -> Handler:
    yield from WAYS[ctx.rules.reassignment].learn(ctx)


def take_up(ctx: ControllerContext) -> Handler:
    yield from WAYS[ctx.rules.reassignment].take_up(ctx)


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    yield from WAYS[ctx.rules.reassignment].requested(ctx, event)


def partition_reassignment_isr_change(ctx: ControllerContext, event: PartitionReassignmentIsrChange) -> Handler:
    yield from WAYS[ctx.rules.reassignment].isr_change(ctx, event)


def resume_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    yield from WAYS[ctx.rules.reassignment].resume_on(ctx, brokers)
