"""Go's struct types as data, and JSON as Go reads and writes their values (canonical revisions, R-REV-6).

`declarations` has the types, `roundtrip` reads a value into a type and writes it again, `canonicaljson` encodes as Go
does.
"""
