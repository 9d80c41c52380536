"""What the commands share about signals and exit statuses. Imports nothing else of maxlm."""
