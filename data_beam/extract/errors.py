"""The error that extraction raises."""


class ExtractionError(Exception):
    """The record is not in the format its input claims; becomes a dead letter."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail
