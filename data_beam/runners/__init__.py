"""How a job runs: Beam's options, worker processes, progress."""
