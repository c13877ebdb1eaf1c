"""Exercise: read the answer to a fenced write. Fill in about 5 lines, then lab.check("read-the-fence", meaning)."""


def meaning(check, write):
    """What the two codes of a transaction [check /controller_epoch, write] mean: "written", "moved", "retry" or "failed".

    "moved": another controller rules. "retry": read the znode again and decide anew. "failed": this znode cannot be written.
    """
    # FILL IN (about 5 lines)
