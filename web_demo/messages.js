// What the gateway sends over the wire protocol v1, as far as the page reads it. Types alone: nothing here runs.

/**
 * @typedef {object} Limits
 * @property {number} message_bytes
 * @property {number} text_chars Unicode code points.
 * @property {number} utterances_in_flight
 * @property {number} languages
 */

/**
 * What is shown of an utterance that is still being said: the earliest words, whose tail may change; only text that is
 * never taken back; or nothing before the whole sentence.
 * @typedef {"live" | "stable" | "final"} Stability
 */

/** @typedef {{queue_ms: number, first_token_ms: number, total_ms: number}} Timings */

/**
 * Gateway → client, as far as this client reads them.
 * @typedef {{type: "session.started", session: string, meeting: string, epoch: string, offset: number,
 *   recovered: boolean | null, languages: string[], options: string[], limits: Limits}} SessionStarted
 * @typedef {{type: "session.updated", reads: string[], speaks: string | null,
 *   stability?: Stability}} SessionUpdated
 * @typedef {{type: "session.draining", deadline_ms: number}} SessionDraining
 * @typedef {{type: "utterance.accepted", id: string, rev: number, offset: number}} UtteranceAccepted
 * @typedef {{type: "caption", utterance: string, speaker: string, lang: string, rev: number, text: string,
 *   final: boolean}} Caption
 * @typedef {{type: "translation.delta", utterance: string, lang: string, rev: number, committed: string,
 *   tentative?: string}} TranslationDelta
 * @typedef {{type: "translation.final", utterance: string, speaker: string, lang: string, rev: number, text: string,
 *   offset: number, timings: Timings, tokens: number, truncated?: boolean}} TranslationFinal
 * @typedef {{type: "translation.failed", utterance: string, lang: string, code: string,
 *   message: string}} TranslationFailed
 * @typedef {{type: "error", code: string, message: string, retryable?: boolean, retry_after_ms?: number | null,
 *   utterance?: string | null, field?: string | null}} GatewayError
 * @typedef {{type: "pong", nonce: string}} Pong
 * @typedef {SessionStarted | SessionUpdated | SessionDraining | UtteranceAccepted | Caption | TranslationDelta |
 *   TranslationFinal | TranslationFailed | GatewayError | Pong} ServerMessage
 */

export {};
