"""What the commands share: flags, errors, signals, exit statuses, locks.

`interrupts`, `stop_signals` and `host_memory` are imported first, so they import nothing that takes
long.
"""
