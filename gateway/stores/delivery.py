"""Delivers a publication to a subscriber of a log, who must not raise, and harms nobody if it does.

Knows: how such a failure is reported. Must not know: who subscribes, where publications come from.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from gateway.domain.log import Publication

_log = logging.getLogger(__name__)


def deliver_to(subscriber: Callable[[Publication], None], publication: Publication) -> None:
    """Never raises."""
    try:
        subscriber(publication)
    except Exception as error:  # its text is not logged: it may quote the transcript
        where = traceback.extract_tb(error.__traceback__)[-1]
        _log.error(
            "A subscriber to the event log raised %s (%s, line %s) and may have missed offset %d",
            type(error).__name__,
            where.filename,
            where.lineno,
            publication.offset,
        )
