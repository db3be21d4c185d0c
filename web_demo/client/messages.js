// The messages of the wire protocol v1 that the gateway sends, with the fields that this client reads. Types only.

/**
 * @typedef {object} Limits
 * @property {number} message_bytes
 * @property {number} text_chars Unicode code points.
 * @property {number} utterances_in_flight
 * @property {number} languages
 * @property {number} id_chars The longest id of an utterance or a meeting.
 * @property {number} name_chars
 * @property {number} participants_shown
 * @property {number} keep_s How long a session without a connection can be resumed.
 */

/**
 * What is shown of an utterance that is still being said:
 * - `live`: the earliest words, the last of which may change
 * - `stable`: only text that stays
 * - `final`: nothing until the sentence is complete
 * @typedef {"live" | "stable" | "final"} Stability
 */

/** @typedef {{queue_ms: number, first_token_ms: number, total_ms: number}} Timings */

/**
 * @typedef {{participant: string, name: string, speaks: string | null, reads: string[]}} Participant
 * @typedef {{type: "session.started", session: string, participant: string, meeting: string, epoch: string,
 *   offset: number, recovered: boolean | null, languages: string[], participants: Participant[], options: string[],
 *   limits: Limits, targets?: Record<string, string[]>}} SessionStarted
 * @typedef {{type: "languages.changed", languages: string[], options: string[],
 *   targets?: Record<string, string[]>}} LanguagesChanged
 * @typedef {{type: "session.updated", reads: string[], speaks: string | null, stability: Stability,
 *   originals: boolean}} SessionUpdated
 * @typedef {{type: "participant.joined"} & Participant} ParticipantJoined
 * @typedef {{type: "participant.updated"} & Participant} ParticipantUpdated
 * @typedef {{type: "participant.left"} & Participant} ParticipantLeft
 * @typedef {{type: "session.draining", deadline_ms: number}} SessionDraining
 * @typedef {{type: "token.expiring", expires_in_ms: number}} TokenExpiring
 * @typedef {{type: "session.refreshed", expires_in_ms: number | null}} SessionRefreshed
 * @typedef {{type: "utterance.accepted", id: string, rev: number, offset: number}} UtteranceAccepted
 * @typedef {{type: "utterance.cancelled", participant: string, utterance: string}} UtteranceCancelled
 * @typedef {{type: "caption", participant: string, utterance: string, speaker: string, lang: string, rev: number,
 *   text: string, final: boolean, offset: number | null}} Caption
 * @typedef {{type: "translation.delta", participant: string, utterance: string, lang: string, rev: number,
 *   committed: string, tentative: string}} TranslationDelta
 * @typedef {{type: "translation.final", participant: string, utterance: string, speaker: string, lang: string,
 *   rev: number, text: string, offset: number, timings: Timings, tokens: number, truncated: boolean}} TranslationFinal
 * @typedef {{type: "translation.failed", participant: string, utterance: string, speaker: string, lang: string,
 *   rev: number, code: string, message: string, offset: number}} TranslationFailed
 * @typedef {{type: "error", code: string, message: string, retryable?: boolean, retry_after_ms?: number | null,
 *   utterance?: string | null, field?: string | null}} GatewayError
 * @typedef {{type: "pong", nonce: string}} Pong
 * @typedef {SessionStarted | SessionUpdated | LanguagesChanged | SessionDraining | ParticipantJoined |
 *   ParticipantUpdated | ParticipantLeft | TokenExpiring | SessionRefreshed | UtteranceAccepted | UtteranceCancelled | Caption |
 *   TranslationDelta | TranslationFinal | TranslationFailed | GatewayError | Pong} ServerMessage
 */

export {};
