"""Takes in what the engine gives of a translation: charges it, measures it, and tells whoever collects it.

Knows: its ticket, the quotas of its tenant. Must not know: the engine, turns, whether there is another attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NoReturn

from gateway.domain.engine import TokenEvent
from gateway.domain.errors import GatewayError
from gateway.domain.grants import tenant_of_account
from gateway.translation.scheduling import measures
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import Ticket

_log = logging.getLogger(__name__)

# Is told the whole text of an attempt whenever there is more of it, and the empty text when the engine died.
OnText = Callable[[str], None]


class NotTakenIn(Exception):
    """The gateway failed on what the engine gave. Not a `GatewayError`, which would be taken for the engine's."""


class Attempt:
    """One attempt of the engine at a translation. Making one forgets what an earlier attempt gave.

    clock: the scheduler's. What fails here is logged, gives the ticket up as an internal error, and raises
    `NotTakenIn`.
    """

    def __init__(self, ticket: Ticket, on_text: OnText | None, quotas: Quotas, clock: Callable[[], float]) -> None:
        self._ticket = ticket
        self._on_text = on_text
        self._quotas = quotas
        self._clock = clock
        ticket.text = ""
        ticket.tokens = ticket.generated = 0
        ticket.last = None

    def take(self, event: TokenEvent) -> None:
        """More of it, from the engine."""
        try:
            self._take(event)
        except Exception as error:
            self._fail(error)

    def died(self) -> None:
        """The engine died: what it gave counts no more."""
        try:
            if self._on_text is not None:
                self._on_text("")
        except Exception as error:
            self._fail(error)

    def _take(self, event: TokenEvent) -> None:
        ticket = self._ticket
        if ticket.first_token_s is None and event.tokens:
            ticket.first_token_s = self._clock()
            measures.first_token(ticket)
        if not ticket.charged:
            self._charge()
        ticket.tokens += event.tokens + event.reused
        ticket.generated += event.tokens
        # Some tokenizers begin with a space that is no part of the translation.
        ticket.text += event.text if ticket.text else event.text.lstrip()
        if self._on_text is not None:
            self._on_text(ticket.text)
        if event.finish is not None:
            ticket.last = event
            ticket.finished_s = self._clock()
            measures.finished(ticket, event)

    def _charge(self) -> None:
        """Count a text whose translation begins, whatever becomes of it."""
        ticket = self._ticket
        ticket.charged = True
        tenant = tenant_of_account(ticket.account)
        self._quotas.translated(tenant, ticket.meeting, ticket.request.target, len(ticket.request.text))

    def _fail(self, error: Exception) -> NoReturn:
        # The text itself is never logged; the type and the place of the failure are.
        _log.exception("what the engine gave of translation %s could not be taken in", self._ticket.request.id)
        failed = GatewayError("The gateway failed on what the engine gave of this translation.")
        self._ticket.given_up = self._ticket.given_up or failed
        raise NotTakenIn from error
