"""What tokens cost, from a dated data file. A model that is not in it has no price, never a guessed one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources
from pathlib import Path

from cupilot.errors import UsageError
from cupilot.lm.names import is_local

VARIABLE = "CUPILOT_PRICES"


@dataclass(frozen=True)
class Price:
    input_usd: float  # per million tokens
    output_usd: float
    as_of: date | None = None  # None: nothing is paid

    def of(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.input_usd + tokens_out * self.output_usd) / 1e6


FREE = Price(0.0, 0.0)


def price(model: str) -> Price | None:
    """By the endpoint's name; None where nobody told."""
    if is_local(model):
        return FREE
    rows = load_prices()
    fitting = [name for name in rows if model == name or model.startswith(f"{name}-")]
    return rows[max(fitting, key=len)] if fitting else None


def load_prices() -> dict[str, Price]:
    shipped = resources.files("cupilot.lm").joinpath("prices.toml").read_text(encoding="utf-8")
    rows = _parse(shipped, "prices.toml")
    own = os.environ.get(VARIABLE)
    if own:
        try:
            rows |= _parse(Path(own).read_text(encoding="utf-8"), own)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the prices in {own} cannot be read: {error}", hint=f"mend or unset {VARIABLE}"
            ) from error
    return rows


def _parse(text: str, file: str) -> dict[str, Price]:
    try:
        return {name: _row(row) for name, row in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{file} is no list of prices: {error!r}",
            hint='a row is ["openai:NAME"] with input, output (dollars per million tokens), as_of (a date)',
        ) from error


def _row(row: Mapping[str, object]) -> Price:
    spent = [row["input"], row["output"]]
    as_of = row["as_of"]
    if not all(isinstance(usd, int | float) and usd >= 0 for usd in spent) or not isinstance(as_of, date):
        raise ValueError("input and output are numbers, as_of is a date")
    return Price(float(str(spent[0])), float(str(spent[1])), as_of)
