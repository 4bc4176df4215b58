"""What has a say before a write: webhooks, priorities, namespaces."""
