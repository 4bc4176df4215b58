"""Records the output of `lws explain` for each situation in packages/lwsctl/tests/golden/explain."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.explanations.scenarios import SCENARIOS

from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.document import lines
from lwsctl.views.selection import Selection

FOLDER: Final = Path(__file__).parents[1] / "golden" / "explain"


def texts() -> Mapping[str, str]:
    """Return the message for each situation, by code."""
    return {code: text_of(code) for code in SCENARIOS}


def text_of(code: str) -> str:
    """Return the message for one situation."""
    return "\n".join(lines(diagnose(SCENARIOS[code], Selection("web")))) + "\n"
