"""Solution: the check first, then the write's own code."""


def meaning(check, write):
    """Return the meaning of the two codes, such as "OK", of a transaction [check /controller_epoch, write]."""
    if check == "BADVERSION":
        return "moved"
    if write == "OK":
        return "written"
    return "retry" if write == "BADVERSION" else "failed"
