"""The exception tree: faults, never verdicts.

A kernel that is wrong is a value (`types.Failed`). An exception means that cuPilot could not do its
work: the user's input is unusable, or the machine lacks something. Every message says what to do next.
"""


class CupilotError(Exception):
    """Base of everything raised on purpose; `hint` is the next step for the person who reads it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(CupilotError):
    """The command or call itself is wrong: a missing file, an unknown name, a bad option."""


class KernelSyntaxError(CupilotError):
    """A kernel file cannot be parsed, or its launch program went wrong; positions in the file from 1."""

    def __init__(self, message: str, *, line: int, column: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {super().__str__()}"


class ProblemError(CupilotError):
    """A problem cannot be loaded, or cannot be checked honestly and is therefore refused."""


class DeviceUnavailable(CupilotError):  # noqa: N818
    """The machine lacks what a device needs (compiler, driver, sandbox); the hint is the command for it."""
