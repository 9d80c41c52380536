"""Raw bytes in, records out; what cannot be read becomes a dead letter."""
