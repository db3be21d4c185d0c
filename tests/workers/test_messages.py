"""Workers of a later version under the same parent."""

from __future__ import annotations

from gateway.workers.messages import PROTOCOLS, ToParent, ToWorker
from tests.engines.host.digests import digest

# Digest of all messages in each version of the protocol.
MESSAGES = {1: "b48dcc5b3d5fcaa1", 2: "c5fc481c0139fcb2", 3: "b48dcc5b3d5fcaa1", 4: "b7c421465421b6cb"}


def test_a_change_of_a_message_is_another_protocol() -> None:
    # A parent of one version speaks to workers of another: raise the first of PROTOCOLS, and add the digest.
    assert MESSAGES[PROTOCOLS[0]] == digest(ToWorker, ToParent)
    assert max(MESSAGES) == PROTOCOLS[0]
