// The options of `GatewayClient` and the events that its listeners get. Types only.

/** @import {SocketClass} from "./connection.js" */
/** @import {Codec} from "./wire/frames.js" */
/** @import {Formality, Glossary, ServerMessage, Stability} from "./messages.js" */
/** @import {TokenSource} from "./session/token_source.js" */

/**
 * What a session starts with. Languages are tags from the gateway's list.
 * @typedef {object} SessionOptions
 * @property {string} [meeting] The meeting's id. Without one the gateway makes a private meeting.
 * @property {string} [name] The name that others see.
 * @property {string | null} [speaks] The language that others see as spoken; also that of utterances without one.
 * @property {readonly string[]} [reads] Languages to translate into.
 * @property {Stability} [stability] What is shown of an utterance before it is final. `live` by default.
 * @property {boolean} [originals] Whether captions come in every spoken language, not only in those that are read.
 * @property {boolean} [record] Whether the meeting is recorded, if it has not begun yet; `false`: nothing is kept of
 *   what is said. In a meeting that is otherwise, the session is refused. By default it is as it is: `started.record`.
 * @property {string} [host] Where no token is needed: the secret that the meeting's id was made of. The session is a host
 *   then: `started.host`.
 * @property {string} [guest] A secret of this person's, the same in all their sessions, where no token says who it is: by it
 *   they are one `person` to the others, and stay muted if they come back.
 * @property {string} [title] What the meeting is called, if it has no title yet and this is a host's session, or the first in it.
 * @property {Glossary} [glossary] How terms are to be translated.
 * @property {string} [context] What the meeting is about.
 * @property {Formality | null} [formality] How translations address people.
 * @property {TokenSource} [token] For a gateway that wants tokens: a token, or a function that returns one or a promise of
 *   one. It is called for every attempt to connect, and whenever the session's time is nearly over. It fails by throwing;
 *   an error whose `permanent` is true ends the session, with the error's message as the reason.
 * @property {ReconnectPolicy | false} [reconnect] When to reconnect; `false`: never.
 * @property {Signal} [signal] Ends the session at once when it is aborted.
 * @property {SocketClass} [WebSocket] For a platform without one, or with one of its own.
 * @property {Codec} [codec] To speak msgpack instead of JSON: the module `@msgpack/msgpack`, or another one like it.
 */

/** @typedef {import("./connection.js").ReconnectPolicy} ReconnectPolicy */
/** @typedef {import("./session/connection_status.js").ConnectionState} ConnectionState */
/** @typedef {import("./session/connection_status.js").StateChanged} StateChanged */

/**
 * What listeners get: the gateway's messages, each publication once, and three events of the client itself:
 * - `state`: `reason` is a sentence; `code` and `field` come from the gateway's error, or are empty. These codes are the
 *   client's own:
 *   - `token_unavailable`: the function for tokens failed
 *   - `unanswered`, with the state `open`: for some seconds the gateway has not answered. The next event says that it has, or
 *     that the connection is lost
 *   - `unreachable`, with the state `reconnecting`: no connection could be opened
 *   - `not_found`, with the state `closed`: the server knows no stream at this address
 * - `utterance.queued`: a final of this client waits for a session, or for a gateway that does not answer; `replaces`, if it
 *   is to correct or take back what was said
 * - `utterance.refused`: the gateway will not accept an utterance of this client, and nothing more comes for it
 *
 * `session.started` comes with every connection. Unfinished translations then start again: their first delta replaces
 * the old text. The same holds after a `session.updated` whose stability is `final`, and for a language that is read
 * again. `participant.left` also comes for those who left during a lost connection, and for one's own old participant
 * if the session is a new one.
 * @typedef {{type: "utterance.queued", id: string, lang: string, text: string, replaces?: string}} UtteranceQueued
 * @typedef {{type: "utterance.refused", id: string, code: string, message: string}} UtteranceRefused
 * @typedef {ServerMessage | StateChanged | UtteranceQueued | UtteranceRefused} ClientEvent
 */

/** Type → event, as `on` takes them. @typedef {{[T in ClientEvent["type"]]: Extract<ClientEvent, {type: T}>}} ClientEventMap */

/**
 * What is used of an `AbortSignal`, which not every platform's types know.
 * @typedef {object} Signal
 * @property {boolean} aborted
 * @property {(type: "abort", listener: () => void) => void} addEventListener
 * @property {(type: "abort", listener: () => void) => void} removeEventListener
 */

/** `signal`: removes the listener when it is aborted. @typedef {{signal?: Signal | undefined}} ListenOptions */

export {};
