"""What a grant may allow in a meeting, and the tenant of meetings that name none.

Knows: the names. Must not know: anything else, so that they are known everywhere at no cost.
"""

from __future__ import annotations

from typing import Literal, get_args

# speak: say something. read: captions and translations. transcript: what was said before, over HTTP.
# admin: revoke what the tenant issued, and read what it has used.
# host: end the meeting for everyone, lock it, remove participants.
Role = Literal["speak", "read", "transcript", "admin", "host"]
ROLES: frozenset[Role] = frozenset(get_args(Role))

# Whose meetings they are where no other tenant is named.
DEFAULT_TENANT = "default"

# Longest name of a tenant or a meeting, and longest name under which a participant is shown.
NAME_CHARS, SHOWN_NAME_CHARS = 64, 80

# Regular expression for the name of a tenant or a meeting: nothing that has a meaning in a path or in a file name.
NAME = rf"^(?!\.+$)[A-Za-z0-9._~-]{{1,{NAME_CHARS}}}\Z"
