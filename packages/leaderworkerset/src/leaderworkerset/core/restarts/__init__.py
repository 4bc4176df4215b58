"""The limits of recreating groups: settings, descriptions of failures, pods on lost nodes."""
