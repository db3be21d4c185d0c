// What the gateway sends over the wire protocol v1, as far as the client reads it. Types alone: nothing here runs.

/**
 * @typedef {object} Limits
 * @property {number} message_bytes
 * @property {number} text_chars Unicode code points.
 * @property {number} utterances_in_flight
 * @property {number} languages
 * @property {number} id_chars Of an utterance's id and of a meeting's.
 * @property {number} name_chars
 * @property {number} participants_shown
 * @property {number} keep_s How long a session without connection can be resumed.
 */

/**
 * What is shown of an utterance that is still being said: the earliest words, whose tail may change; only text that is
 * never taken back; or nothing before the whole sentence.
 * @typedef {"live" | "stable" | "final"} Stability
 */

/** @typedef {{queue_ms: number, first_token_ms: number, total_ms: number}} Timings */

/**
 * Gateway → client, as far as this client reads them.
 * @typedef {{participant: string, name: string, speaks: string | null, reads: string[]}} Participant
 * @typedef {{type: "session.started", session: string, participant: string, meeting: string, epoch: string,
 *   offset: number, recovered: boolean | null, languages: string[], participants: Participant[], options: string[],
 *   limits: Limits}} SessionStarted
 * @typedef {{type: "session.updated", reads: string[], speaks: string | null, stability: Stability,
 *   originals: boolean}} SessionUpdated
 * @typedef {{type: "participant.joined"} & Participant} ParticipantJoined
 * @typedef {{type: "participant.updated"} & Participant} ParticipantUpdated
 * @typedef {{type: "participant.left"} & Participant} ParticipantLeft
 * @typedef {{type: "session.draining", deadline_ms: number}} SessionDraining
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
 * @typedef {SessionStarted | SessionUpdated | SessionDraining | ParticipantJoined | ParticipantUpdated |
 *   ParticipantLeft | UtteranceAccepted | UtteranceCancelled | Caption | TranslationDelta | TranslationFinal | TranslationFailed |
 *   GatewayError | Pong} ServerMessage
 */

export {};
