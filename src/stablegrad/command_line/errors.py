"""The one error that a person's own mistakes become: a place, a message, exit status 2."""

from dataclasses import dataclass


@dataclass
class InputError(Exception):
    """Something in the file, the inputs or the options that the command cannot work with.

    Attributes:
        message: What was wrong and what to do about it, in one sentence or two.
        file: The person's file, as they named it, or None when an option is to blame.
        line: The line of that file, counted from 1, or None where no line is to blame.
    """

    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.file and self.line:
            place.append(str(self.line))
        return f"{':'.join(place)}: {self.message}" if place else self.message


def one_line(error: BaseException) -> str:
    """The class of an exception and the first paragraph of its message, on one line.

    >>> one_line(ValueError("the shapes differ"))
    'ValueError: the shapes differ'
    >>> one_line(KeyError())
    'KeyError'
    """
    paragraph = message_of(error).strip().split("\n\n")[0]
    words = " ".join(paragraph.split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def message_of(error: BaseException) -> str:
    """str(error), also where an exception of a person's own has a message that cannot be made."""
    try:
        return str(error)
    except Exception as second:
        return f"(no message: its __str__ raises {type(second).__name__})"
