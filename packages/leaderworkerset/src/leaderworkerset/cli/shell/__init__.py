"""The command line: options moved to the front, names completed, examples shown."""
