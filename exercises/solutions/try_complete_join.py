"""Solution: the join phase ends when a JoinGroup of every member, pending ids included, is parked."""


def try_complete_join(members):
    return all(member.parked is not None for member in members)
