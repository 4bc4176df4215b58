"""What the controllers share: steps as values, performing them, events."""
