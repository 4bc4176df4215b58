"""The Go types and schemas of the built-in kinds, as data; reads objects as these types."""
