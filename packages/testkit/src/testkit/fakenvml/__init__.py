"""Simulates a machine with GPUs. `pynvml.py` in this directory replaces the real module."""

import json
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
"""The directory to add to the module search path."""


class FakeMachine:
    """The file with the descriptions of the GPUs. `change` rewrites it."""

    def __init__(self, path: Path, *gpus: Mapping[str, Any], driver: str | None = "570.1") -> None:
        self.path = path
        self.gpus: list[dict[str, Any]] = [dict(gpu) for gpu in gpus]
        self.driver = driver
        self.change()

    def change(self, number: int | None = None, **fields: Any) -> None:
        """Change fields of one GPU, and write the file."""
        if number is not None:
            self.gpus[number] |= fields
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"driver": self.driver, "gpus": self.gpus}))
        fresh.replace(self.path)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that provide these GPUs to a new process."""
        return {"FAKE_NVML": str(self.path), "PYTHONPATH": str(FOLDER)}

    def use(self, patch: pytest.MonkeyPatch) -> "FakeMachine":
        """Provide these GPUs to this process."""
        patch.setenv("FAKE_NVML", str(self.path))
        spec = spec_from_file_location("pynvml", FOLDER / "pynvml.py")
        if spec is None or spec.loader is None:
            raise ImportError(str(FOLDER))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        patch.setitem(sys.modules, "pynvml", module)
        return self


def gpus(number: int, **fields: Any) -> list[dict[str, Any]]:
    """Return the descriptions of `count` GPUs. The GPUs of each half are close to each other."""
    return [{"uuid": f"GPU-{index}", "near": index * 2 // number, **fields} for index in range(number)]
