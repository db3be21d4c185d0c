// The public address of the JavaScript client, which other pages import (docs/browser.md), and of its npm package. The
// code is in client/.

/** @typedef {import("./client/connection.js").Socket} Socket */
/** @typedef {import("./client/connection.js").SocketClass} SocketClass */
/** @typedef {import("./client/wire/frames.js").Codec} Codec */
/** @typedef {import("./client/events.js").ClientEvent} ClientEvent */
/** @typedef {import("./client/events.js").ClientEventMap} ClientEventMap */
/** @typedef {import("./client/events.js").ConnectionState} ConnectionState */
/** @typedef {import("./client/events.js").ReconnectPolicy} ReconnectPolicy */
/** @typedef {import("./client/events.js").SessionOptions} SessionOptions */
/** @typedef {import("./client/events.js").StateChanged} StateChanged */
/** @typedef {import("./client/events.js").UtteranceQueued} UtteranceQueued */
/** @typedef {import("./client/events.js").UtteranceRefused} UtteranceRefused */
/** @typedef {import("./client/history/transcript.js").Transcript} Transcript */
/** @typedef {import("./client/history/transcript.js").TranscriptUtterance} TranscriptUtterance */
/** @typedef {import("./client/lines.js").Line} Line */
/** @typedef {import("./client/messages.js").Caption} Caption */
/** @typedef {import("./client/messages.js").Formality} Formality */
/** @typedef {import("./client/messages.js").GatewayError} GatewayError */
/** @typedef {import("./client/messages.js").Glossary} Glossary */
/** @typedef {import("./client/messages.js").Limits} Limits */
/** @typedef {import("./client/messages.js").Participant} Participant */
/** @typedef {import("./client/messages.js").ServerMessage} ServerMessage */
/** @typedef {import("./client/messages.js").SessionStarted} SessionStarted */
/** @typedef {import("./client/messages.js").Stability} Stability */
/** @typedef {import("./client/messages.js").TranslationDelta} TranslationDelta */
/** @typedef {import("./client/messages.js").TranslationFailed} TranslationFailed */
/** @typedef {import("./client/messages.js").TranslationFinal} TranslationFinal */
/** @typedef {import("./client/recognisers/utterances.js").RecognisedSpeech} RecognisedSpeech */
/** @typedef {import("./client/session/token_source.js").TokenSource} TokenSource */
/** @typedef {import("./client/utterance.js").Said} Said */

export { GatewayClient } from "./client/gateway_client.js";
export { SessionError } from "./client/line_reader.js";
export { Recogniser } from "./client/recognisers/recogniser.js";
export { eraseTranscript, fetchTranscript, TranscriptError } from "./client/history/transcript.js";
