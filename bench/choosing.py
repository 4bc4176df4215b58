"""Runs several benchmarks of one subject as one command, for example `python -m bench.cluster idle --runs 3`."""

import sys
from importlib import import_module


def run(package: str, names: tuple[str, ...]) -> None:
    """Run the benchmark with the name in the first argument, with the other arguments."""
    benchmark, *rest = sys.argv[1:] or [""]
    if benchmark not in names:
        lines = [f"usage: python -m {package} NAME [--help]", ""]
        lines += [
            f"  {name:<10} {(import_module(f'{package}.{name}').__doc__ or '').splitlines()[0]}" for name in names
        ]
        raise SystemExit("\n".join(lines))
    sys.argv = [f"{package} {benchmark}", *rest]
    import_module(f"{package}.{benchmark}").main()
