"""The loader and dumper of YAML: those of the library libyaml, in C, where PyYAML was built with it.

PyYAML's wheels are. Where there is no wheel, as in the first months of a new Python, PyYAML is built from source, and without
libyaml's headers it has only its own scanner in Python: the same results, many times slower.
"""

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]  # the same methods

__all__ = ["SafeDumper", "SafeLoader"]
