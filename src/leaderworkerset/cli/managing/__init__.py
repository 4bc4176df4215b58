"""What `lws manager` is made of: flags, logs, the process."""
