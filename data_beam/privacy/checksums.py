"""The two check digits that tell an identity number from a row of digits."""

_WEIGHTS = tuple(2**(17 - i) % 11 for i in range(17))
"""7 9 10 5 8 4 2 1 6 3 7 9 10 5 8 4 2: the powers of two modulo 11, the last digit having 2."""
_CHECK = "10X98765432"
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
"""Twice a digit, its own digits added."""


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B).

    From the right every second digit is doubled and its digits added; the sum is a multiple of 10.

    Args:
      digits: ASCII digits, at least one.
    """
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = ord(digit) - 48
        total += _DOUBLED[value] if position % 2 else value
    return total % 10 == 0


def mod11_2(number: str) -> bool:
    """Whether the last of 18 characters is the check character of the other 17.

    ISO/IEC 7064 MOD 11-2 as GB 11643-1999 applies it to resident identity numbers: the digits
    weighted with the powers of two modulo 11 add up, check character included, to 1 modulo 11; ten
    is written X.

    Args:
      number: 17 ASCII digits and one of 0-9, X, x.
    """
    total = sum((ord(digit) - 48) * weight
                for digit, weight in zip(number[:17], _WEIGHTS, strict=True))
    return _CHECK[total % 11] == number[17].upper()
