"""The two ways in which a record has no text."""


class ExtractionError(Exception):
    """The record is not in the format its input claims; becomes a dead letter."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class NoText(Exception):
    """The record is what it claims, but what it holds is no text; becomes a dropped document."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail
