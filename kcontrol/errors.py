"""What goes wrong for the person in front of the workbook, said in one sentence."""


class UserError(Exception):
    """A problem the user can act on: its text is one sentence that says what is wrong and what to do.

    The command line prints the text alone and exits with status 1; a notebook shows the text alone, without a traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [str(self)]
