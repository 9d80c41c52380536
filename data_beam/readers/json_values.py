"""JSON values as the standard library reads them, and long integers, which it refuses."""

import json
from typing import Any

_DECODER = json.JSONDecoder()
# Python refuses integers of more than 4,300 digits (sys.set_int_max_str_digits); no field that is
# read is a number.
_OF_LONG_INTEGERS = json.JSONDecoder(parse_int=float)


class Invalid(Exception):
    """What stands at a place is no JSON value, or none that can be read.

    Attributes:
      reason, detail: of the dead letter.
      paths: where it is no longer JSON; None where it may be.
    """

    def __init__(self, reason: str, detail: str, paths: int | None):
        super().__init__(detail)
        self.reason, self.detail, self.paths = reason, detail, paths


def first(text: str, begin: int = 0) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends.

    Raises:
      Invalid: there is none.
    """
    try:
        try:
            return _DECODER.raw_decode(text, begin)
        except json.JSONDecodeError:
            raise
        except ValueError:
            return _OF_LONG_INTEGERS.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise Invalid("invalid JSON", f"{error.msg} (character {error.pos - begin + 1})",
                      error.pos) from None
    except RecursionError:
        raise Invalid("nested too deeply", "arrays and objects in each other", None) from None


def only(text: str) -> Any:
    """The value that is the whole text but for blanks around it.

    Raises:
      Invalid: it is none, or there is more.
    """
    begin = len(text) - len(text.lstrip(" \t\r\n"))
    value, end = first(text, begin)
    if text[end:].strip(" \t\r\n"):
        raise Invalid("invalid JSON", f"Extra data (character {end + 1})", end)
    return value
