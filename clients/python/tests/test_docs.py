"""The code of docs/python.md, as a reader would run it."""

import re
from pathlib import Path

import pytest

import weft

ROOT = Path(__file__).parents[3]


def test_the_code_of_the_page_runs(
    lab: weft.Laboratory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(code) >= 6
    names: dict[str, object] = {}
    for block in code:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "True" in printed and "subnet-up" in printed and "updn" in printed, printed
