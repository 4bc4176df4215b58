"""Writes the messages of all causes to packages/lwsctl/tests/golden/explain.

Run it with `python -m tests.explanations`.
"""

from tests.explanations.golden import FOLDER, texts

FOLDER.mkdir(parents=True, exist_ok=True)
for path in FOLDER.glob("*.txt"):
    path.unlink()
for code, text in texts().items():
    (FOLDER / f"{code}.txt").write_text(text)
