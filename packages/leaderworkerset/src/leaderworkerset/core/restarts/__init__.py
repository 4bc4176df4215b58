"""The limits for recreating groups: settings, failure descriptions, and pods on lost nodes."""
