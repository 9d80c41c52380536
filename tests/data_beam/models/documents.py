"""Documents for the tests of the model filters."""

from data_beam.base.records import Document, Origin, text_sha256


def document(text: str, language: str = "zh", is_code: bool = False) -> Document:
    return Document(Origin("s", "p"), text, "general", "MIT", "", language, 0.9, text_sha256(text),
                    "0" * 64, (), is_code)
