"""Personal data in texts: recognisers, and the filter that replaces the items they find."""
