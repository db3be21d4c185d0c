// What `GatewayClient` is told and what its listeners hear. Types alone: nothing here runs.

/** @typedef {import("./messages.js").ServerMessage} ServerMessage */
/** @typedef {import("./messages.js").Stability} Stability */

/**
 * What a session starts with. Languages are tags as the gateway lists them.
 * @typedef {object} SessionOptions
 * @property {readonly string[]} [reads] Languages to translate into.
 * @property {string | null} [speaks] The language of utterances that name none.
 * @property {string} [name] Who speaks.
 * @property {Stability} [stability] What is shown of an utterance before it is final; `live` unless given.
 */

/**
 * - `connecting`: the socket is being opened, or `session.start` is on its way
 * - `loading`: connected, and the engine still loads; `session.start` is sent again until it is taken
 * - `open`: there is a session; after `close`, until the gateway has finished it
 * - `reconnecting`: the connection is gone, a new one will be tried
 * - `closed`: it will not be tried again (until `connect` is called)
 * @typedef {"connecting" | "loading" | "open" | "reconnecting" | "closed"} ConnectionState
 */

/**
 * What a listener hears: the gateway's messages, without those that repeat what it heard before, and
 * - `state`: the connection's state changed; `reason` is a sentence, or empty
 * - `utterance.restarted`: the connection was lost and the utterance is translated anew; forget unfinished text
 * - `utterance.refused`: the gateway will not take the utterance; nothing more will come for it
 * - `utterance.settled`: every language of the utterance is final or failed
 * @typedef {{type: "state", state: ConnectionState, reason: string}} StateChanged
 * @typedef {{type: "utterance.restarted", id: string}} UtteranceRestarted
 * @typedef {{type: "utterance.refused", id: string, code: string, message: string}} UtteranceRefused
 * @typedef {{type: "utterance.settled", id: string}} UtteranceSettled
 * @typedef {ServerMessage | StateChanged | UtteranceRestarted | UtteranceRefused | UtteranceSettled} ClientEvent
 */

export {};
