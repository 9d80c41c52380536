"""Personal data in texts: recognisers, and the rule that replaces what they find."""
