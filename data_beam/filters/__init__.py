"""Rules that drop a document, each with the name it is counted under."""
