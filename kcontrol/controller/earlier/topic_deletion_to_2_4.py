"""The queue of topic deletions up to 2.4: one topic after the other.

Source: TopicDeletionManager.scala (0.11 to 2.4), DeleteTopicsThread.doWork (0.8.1).
"""

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.topic_deletion import replicas_by_topic, resume_topics
from kcontrol.core.effects import Handler


def resume_deletions_one_by_one(ctx: ControllerContext) -> Handler:
    """Complete, retry or start the deletion of each queued topic, one topic after the other.

    The states of a topic's replicas decide which of the three is possible (`resume_topics`).

    Source: TopicDeletionManager.resumeDeletions (2.4).
    """
    queued = replicas_by_topic(ctx, ctx.topics_to_be_deleted)
    for topic, replicas in queued.items():
        yield from resume_topics(ctx, {topic: replicas})
