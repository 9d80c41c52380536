"""What the tokenizer commands share."""
