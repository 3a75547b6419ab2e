from __future__ import annotations

from pathlib import Path

import pytest

from cupilot.author.builtin import BuiltinAuthor


@pytest.fixture(scope="session")
def author() -> BuiltinAuthor:
    return BuiltinAuthor()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("problems")
