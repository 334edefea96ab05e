"""What can be wrong with data files, and the few words that say what to do next."""

from __future__ import annotations

from ..errors import NeedleError


class DataFileError(NeedleError, ValueError):
    """A data file is damaged, hostile, or not of the format that was asked for."""


class DataMissingError(NeedleError, FileNotFoundError):
    """A data file is not where it should be."""


class DownloadError(NeedleError, OSError):
    """A data file could not be downloaded from any of its mirrors."""
