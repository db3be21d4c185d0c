// The messages of the wire protocol v1 that the gateway sends. Types only; a test holds them against `/asyncapi.json`.

/**
 * @typedef {object} Limits
 * @property {number} message_bytes
 * @property {number} text_chars Unicode code points.
 * @property {number} utterances_in_flight
 * @property {number} languages
 * @property {number} messages_per_s
 * @property {number} messages_burst
 * @property {number} id_chars The longest id of an utterance or a meeting.
 * @property {number} name_chars
 * @property {number} glossary_terms
 * @property {number} term_chars
 * @property {number} context_chars
 * @property {number} meeting_languages
 * @property {number} participants_shown
 * @property {number} start_timeout_s
 * @property {number} idle_s
 * @property {number} keep_s How long a session without a connection can be resumed.
 */

/**
 * What is shown of an utterance that is still being said:
 * - `live`: the earliest words, the last of which may change
 * - `stable`: only text that stays
 * - `final`: nothing until the sentence is complete
 * @typedef {"live" | "stable" | "final"} Stability
 */

/** Target language → source term → target term. @typedef {{[lang: string]: {[term: string]: string}}} Glossary */
/** @typedef {"formal" | "informal"} Formality */
/**
 * `at_ms`, in messages with an offset: when it came into the log, as Unix time in milliseconds by the gateway's clock.
 * Older gateways do not send it.
 */

/** @typedef {{queue_ms: number, first_token_ms: number, total_ms: number}} Timings */

/**
 * @typedef {{participant: string, name: string, speaks: string | null, reads: string[],
 *   person?: string, muted?: boolean}} Participant
 * @typedef {{type: "session.started", session: string, participant: string, meeting: string, epoch: string,
 *   offset: number, recovered: boolean | null, languages: string[], participants: Participant[], options: string[],
 *   limits: Limits, targets?: {[lang: string]: string[]}, record?: boolean,
 *   host?: boolean, locked?: boolean, muted?: boolean, person?: string,
 *   title?: string, held_by?: string}} SessionStarted
 * @typedef {{type: "languages.changed", languages: string[], options: string[],
 *   targets?: {[lang: string]: string[]}}} LanguagesChanged
 * @typedef {{type: "session.updated", reads: string[], speaks: string | null, stability: Stability,
 *   originals: boolean}} SessionUpdated
 * @typedef {{type: "session.muted", muted: boolean}} SessionMuted
 * @typedef {{type: "participant.joined"} & Participant} ParticipantJoined
 * @typedef {{type: "participant.updated"} & Participant} ParticipantUpdated
 * @typedef {{type: "participant.left"} & Participant} ParticipantLeft
 * @typedef {{type: "meeting.locked", locked: boolean}} MeetingLocked
 * @typedef {{type: "meeting.titled", title: string, held_by: string}} MeetingTitled
 * @typedef {{type: "session.draining", deadline_ms: number}} SessionDraining
 * @typedef {{type: "token.expiring", expires_in_ms: number}} TokenExpiring
 * @typedef {{type: "session.refreshed", expires_in_ms: number | null}} SessionRefreshed
 * @typedef {{type: "utterance.accepted", id: string, rev: number, offset: number,
 *   lang?: string}} UtteranceAccepted
 * @typedef {{type: "utterance.cancelled", participant: string, utterance: string}} UtteranceCancelled
 * @typedef {{type: "caption", participant: string, utterance: string, speaker: string, lang: string, rev: number,
 *   text: string, final: boolean, offset: number | null, at_ms?: number}} Caption
 * @typedef {{type: "utterance.replaced", participant: string, utterances: string[],
 *   by: string | null, place?: number, at_ms?: number}} UtteranceReplaced
 * @typedef {{type: "translation.delta", participant: string, utterance: string, lang: string, rev: number,
 *   committed: string, tentative: string}} TranslationDelta
 * @typedef {{type: "translation.final", participant: string, utterance: string, speaker: string, lang: string,
 *   rev: number, text: string, offset: number, timings: Timings, tokens: number, truncated: boolean, at_ms?: number,
 *   source_lang?: string, confidence?: number, unsure?: boolean}} TranslationFinal
 * @typedef {{type: "translation.failed", participant: string, utterance: string, speaker: string, lang: string,
 *   rev: number, code: string, message: string, offset: number}} TranslationFailed
 * @typedef {{type: "error", code: string, message: string, retryable?: boolean, retry_after_ms?: number | null,
 *   utterance?: string | null, field?: string | null}} GatewayError
 * @typedef {{type: "pong", nonce: string}} Pong
 * @typedef {SessionStarted | SessionUpdated | SessionMuted | LanguagesChanged | SessionDraining | ParticipantJoined |
 *   ParticipantUpdated | ParticipantLeft | MeetingLocked | MeetingTitled | TokenExpiring | SessionRefreshed | UtteranceAccepted | UtteranceCancelled | UtteranceReplaced | Caption |
 *   TranslationDelta | TranslationFinal | TranslationFailed | GatewayError | Pong} ServerMessage
 */

export {};
