// What `GatewayClient` is told and what its listeners hear. Types alone: nothing here runs.

/** @import {ServerMessage, Stability} from "./messages.js" */

/**
 * What a session starts with. Languages are tags as the gateway lists them.
 * @typedef {object} SessionOptions
 * @property {string} [meeting] Whom to share with; absent: a private meeting, whose id the gateway tells.
 * @property {string} [name] Who this is, for the others.
 * @property {string | null} [speaks] The language of utterances that name none, and what the others are told.
 * @property {readonly string[]} [reads] Languages to translate into.
 * @property {Stability} [stability] What is shown of an utterance before it is final; `live` unless given.
 * @property {boolean} [originals] Whether what is said comes in every language, not only in those that are read.
 */

/**
 * `loading`: connected, and the engine still loads; `open`: there is a session, after `close` until it is finished;
 * `reconnecting`: the connection is gone, another will be tried; `closed`: not before `connect` is called.
 * @typedef {"connecting" | "loading" | "open" | "reconnecting" | "closed"} ConnectionState
 */

/**
 * What a listener hears: the gateway's messages, each publication once, and
 * - `state`: `reason` is a sentence, `code` and `field` are those of the error behind it, or empty
 * - `utterance.queued`: a final of this client waits until there is a session to send it on
 * - `utterance.refused`: the gateway will not take an utterance of this client; nothing more comes for it
 *
 * `session.started` comes again with every connection. Unfinished translations come anew then: the first delta replaces
 * what was there. So it is behind a `session.updated` whose stability is `final`, and in a language that is read again.
 * `participant.left` is told of those who left meanwhile, too, and of oneself where the session is another one.
 * @typedef {{type: "state", state: ConnectionState, reason: string, code: string, field: string}} StateChanged
 * @typedef {{type: "utterance.queued", id: string, lang: string, text: string}} UtteranceQueued
 * @typedef {{type: "utterance.refused", id: string, code: string, message: string}} UtteranceRefused
 * @typedef {ServerMessage | StateChanged | UtteranceQueued | UtteranceRefused} ClientEvent
 */

export {};
