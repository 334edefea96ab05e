"""The course around needle: stages, starters, checks, notebooks and grades, all derived from one solved source."""
