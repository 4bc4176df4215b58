"""What bounds the recreation of groups: settings, what is known of a failure, pods on lost nodes."""
