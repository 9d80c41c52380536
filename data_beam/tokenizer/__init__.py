"""What the tokenizer commands share: training, measuring, encoding a corpus."""
