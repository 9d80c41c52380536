"""The text of a record, by format: pure functions from markup to text."""
