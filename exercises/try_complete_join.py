"""Exercise: may the join phase end? Fill in about 3 lines, then exercises.check("try-complete-join", try_complete_join)."""


def try_complete_join(members):
    """Return whether the join phase may end.

    Each member has member.member_id, member.leads, member.parked ("JoinGroup" or None) and member.is_pending: True if the
    coordinator has assigned the member id in MEMBER_ID_REQUIRED, and no JoinGroup has used it yet.
    """
    # FILL IN (about 3 lines)
