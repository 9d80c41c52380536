"""The stages of `prepare`: each reads what the one before it wrote."""
