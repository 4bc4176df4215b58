"""What is typed: options moved to the front, names completed, examples shown."""
