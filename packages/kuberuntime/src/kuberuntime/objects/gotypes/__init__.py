"""Represents Go struct types as data, and encodes them to the same JSON as Go (revisions, R-REV-6).

`declarations` contains the types, `roundtrip` decodes a value into a type and encodes it again, and `canonicaljson`
encodes JSON like Go.
"""
