"""Exceptions. All are :class:`WeftError`, with a message and often a hint: what to do."""

from __future__ import annotations


class WeftError(Exception):
    """Something failed. ``hint`` says what to do about it, if anything is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class NoLaboratory(WeftError):
    """No laboratory runs, or none of that name, or several do and none was named."""


class LaboratoryGone(WeftError):
    """The laboratory, its hub or the way there ended during a conversation."""


class NoAnswer(WeftError, TimeoutError):
    """Nothing came in time."""


class BadAnswer(WeftError):
    """What came is no line of the control protocol, or is longer than one may be."""


class Refused(WeftError):
    """A process answered with an error. ``code`` is one of those that docs/control.md lists."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.code = code


class CommandFailed(WeftError):
    """The program ``weft`` failed. Exit code 2 means wrong input."""

    def __init__(self, message: str, hint: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message, hint)
        self.exit_code = exit_code


class NoProgram(WeftError):
    """There is no program ``weft`` to run."""
