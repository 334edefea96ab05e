"""What goes wrong by a user's hand."""

from __future__ import annotations


class UserError(Exception):
    """A mistake that the user can mend.

    The message is one line that names the file (and line), the cause and the next step; the command line prints it on
    standard error and exits with status 2.
    """
