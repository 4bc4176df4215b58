"""Go's struct types as data, and JSON as Go reads and writes values of them (R-REV-6).

`declarations` has the types, `roundtrip` reads a value into one and writes it again, `canonicaljson` encodes as Go does.
"""
