"""Where keys come from: the environment, or a file that only its owner can read.

A key goes to the host it is for and nowhere else. It is in no request that is stored, in no message, and
in no process that cuPilot starts for candidates (those have an empty environment).
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from cupilot.errors import UsageError

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
CUSTOM_VARIABLE = "CUPILOT_API_KEY"  # for endpoints with a base URL of their own
FILE_VARIABLE = "CUPILOT_KEYS"


def keys_file() -> Path:
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "cupilot" / "keys.toml"


def provider_key(provider: str) -> str:
    """The key for the provider's own service."""
    for variable in VARIABLES[provider]:
        if os.environ.get(variable):
            return os.environ[variable].strip()
    found = _from_file(provider)
    if found is None:
        raise UsageError(
            f"there is no key for {provider}",
            hint=f'set {VARIABLES[provider][0]}, or write {provider} = "..." into {keys_file()} (mode 600)',
        )
    return found


def host_key(host: str) -> str | None:
    """The key for a server with a base URL of its own; many local servers need none."""
    return _from_file(host) or os.environ.get(CUSTOM_VARIABLE, "").strip() or None


def _from_file(name: str) -> str | None:
    path = keys_file()
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"others can read the keys in {path}", hint=f"chmod 600 {path}")
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The parser's message may quote the file: it is not passed on.
        raise UsageError(
            f"{path} cannot be read ({type(error).__name__})", hint='its lines look like openai = "sk-..."'
        ) from None
    value = entries.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else None
