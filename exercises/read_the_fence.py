"""Exercise: read the response to a fenced write. Fill in about 5 lines, then exercises.check("read-the-fence", meaning)."""


def meaning(check, write):
    """Return the meaning of the two codes, such as "OK", of a transaction [check /controller_epoch, write].

    "written": the write is done. "moved": another broker is controller. "retry": the znode has to be read again. "failed": this
    znode cannot be written.
    """
    # FILL IN (about 5 lines)
