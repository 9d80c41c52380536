"""Paraphrases by a user's function that translates to another language and back."""

from collections.abc import Callable
from typing import Any

from data_beam.base import user_function
from maxlm.config.schema import ConfigError

_PROBE = ["The weather is fine today.", "今天天气很好。"]
MIN_RATIO, MAX_RATIO = 0.5, 1.5  # length / original; outside, it stopped early or repeated itself


class BackTranslation:
    """A user's translator, `module:function`: it takes a list of texts and returns a list of the
    same length. Raises ConfigError, which names the setting `field`, if the function cannot be
    loaded or does not return two texts for two sentences."""

    def __init__(self, name: str, field: str):
        self._name = f"{field}: {name!r}"
        self._function: Callable[..., Any] = user_function.load(name, field)
        try:
            self._call(_PROBE)
        except (Exception, SystemExit) as error:
            raise ConfigError(str(error) if isinstance(error, ValueError) else
                              f"{self._name} raised {type(error).__name__}: {error}") from error

    def _call(self, paragraphs: list[str]) -> list[str]:
        result = self._function(list(paragraphs))
        if (not isinstance(result, (list, tuple)) or len(result) != len(paragraphs)
                or not all(isinstance(text, str) for text in result)):
            raise ValueError(f"{self._name} must return a list of {len(paragraphs)} texts for "
                             f"{len(paragraphs)} texts, got {str(result)[:80]!r}")
        return list(result)

    def __call__(self, text: str) -> str | None:
        """The text with each non-empty line translated. None if nothing changes or the length is
        outside the limits. Raises what the function raises, and ValueError if it returns something
        other than a list of as many texts."""
        lines = text.split("\n")
        places = [i for i, line in enumerate(lines) if line.strip()]
        for place, line in zip(places, self._call([lines[i] for i in places]), strict=True):
            lines[place] = line
        result = "\n".join(lines)
        if result == text or not MIN_RATIO <= len(result) / len(text) <= MAX_RATIO:
            return None
        return result
