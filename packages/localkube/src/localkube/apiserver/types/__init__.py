"""The Go types and schemas of the built-in kinds as data. Decodes objects as these types."""
