"""Handles groups that complete, hang, or miss a deadline (`run-to-completion`, `progress-timeout`)."""
