"""Go struct types as data, and their JSON encoding as in Go (canonical revisions, R-REV-6).

`declarations` contains the types, `roundtrip` decodes a value into a type and encodes it again, and `canonicaljson`
encodes JSON like Go.
"""
