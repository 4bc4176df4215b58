"""The manager: configuration, flags, logs, and the process that runs controllers and webhooks."""
