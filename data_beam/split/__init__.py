"""Train, validation and test by the hash of the content."""
