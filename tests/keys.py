"""Keys of a gateway, and what somebody gets who has them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from gateway.config import AuthSettings, Settings
from gateway.domain.grants import Grant
from gateway.identity import key_file
from gateway.identity.authenticator import Keys
from gateway.identity.key_file import KeyFile, new_api_key, new_signing_key
from tests.usual import usual


class Keyring:
    """A key file with one signing key and one API key of the tenant `acme`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.json"
        self._signing = new_signing_key()
        kept, self.api_key = new_api_key("acme")
        key_file.save(self.path, KeyFile(signing=(self._signing,), api=(kept,)))

    def settings(self, **fields: Any) -> Settings:
        return Settings(auth=AuthSettings(keys_file=str(self.path)), **fields)

    def token(self, *, age_s: float = 0.0, **fields: Any) -> str:
        """For Ana in the meeting `m`. age_s: how long ago it was issued, for ten minutes."""
        grant = {
            "tenant": "acme",
            "subject": "ana",
            "meeting": "m",
            "roles": frozenset({"speak", "read"}),
            **fields,
        }
        keys = usual(Keys, self.path, clock=lambda: time.time() - age_s)
        return keys.issue(Grant(**grant), for_s=600).token

    def bearer(self, **fields: Any) -> dict[str, str]:
        """The header with a token."""
        return {"Authorization": f"Bearer {self.token(**fields)}"}

    def take_api_key_away(self) -> None:
        key_file.save(self.path, KeyFile(signing=(self._signing,)))
