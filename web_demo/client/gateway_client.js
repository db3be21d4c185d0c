// A session in a meeting that survives its connections, over the wire protocol v1. Knows which message to send when;
// must not know the page. docs/browser.md explains how to use it.

import { Connection } from "./connection.js";
import { EventEmitter } from "./event_emitter.js";
import { LineReader } from "./line_reader.js";
import { Lines } from "./lines.js";
import { LogPosition } from "./log_position.js";
import { Participants } from "./participants.js";
import { Pinger } from "./pinger.js";
import { refusalDelayMs } from "./session/refusal_delay.js";
import { ConnectionStatus, outage, saidAtClose, UNANSWERED } from "./session/connection_status.js";
import { SessionRefresher } from "./session/session_refresher.js";
import { SessionStarter } from "./session/session_starter.js";
import { SessionSettings } from "./session_settings.js";
import { UtteranceSender } from "./utterance_sender.js";
import { isNotFound, misaddressed, notFound } from "./wire/address_check.js";

/** @import {ClientEvent, ClientEventMap, ListenOptions, SessionOptions} from "./events.js" */
/** @import {Line} from "./lines.js" */
/** @import {GatewayError, Limits, ServerMessage, SessionStarted, SessionUpdated, Stability} from "./messages.js" */
/** @import {Settings, TranslationOptions} from "./session_settings.js" */
/** @import {NoToken} from "./session/token_source.js" */
/** @import {Reason} from "./session/connection_status.js" */
/** @import {Said} from "./utterance.js" */

const ENDED = { code: "closed", message: "The session has ended." };
// Errors that answer no message of this client: an option that the gateway does not know, and news of the engine.
const UNSOLICITED = new Set(["unsupported_option", "engine_restarting"]);
// Errors about a frame that may not name what was in it.
const UNREADABLE = new Set(["invalid_message", "message_too_large"]);
// What ends the session. Not the close that follows: a proxy may replace its code by another, after which the client
// would reconnect.
const OVER = new Set(["meeting_ended", "removed"]);
// Errors of a start that no other settings would avoid.
const NO_ACCESS = new Set(["unauthenticated", "token_revoked"]);

export class GatewayClient {
  #participants = new Participants();
  /** The others in the meeting, by their public ids. */
  participants = this.#participants.others;
  #connection;
  #emitter = new EventEmitter();
  #status = new ConnectionStatus((event) => this.#emitter.emit(event));
  #meeting;
  #host;
  #guest;
  #title;
  #settings;
  #starter;
  #refresher;
  #position = new LogPosition();
  #utterances;
  #pinger = new Pinger((message) => this.#connection.send(message));
  /** The last message, if it was an error: a close that follows is explained by it. @type {GatewayError | null} */
  #lastError = null;
  /** @type {SessionStarted | null} */
  #started = null;
  /** What is wrong with the address: null if nothing is known to be, undefined if nobody has looked. @type {Reason | null | undefined} */
  #outage;
  /** Whether a command of a host was sent, and no refusal came. */
  #hasCommanded = false;
  #isDraining = false;
  /** After `close`: what was said is sent (`wanted`), then `session.end` (`sent`). @type {"no" | "wanted" | "sent"} */
  #ending = "no";
  #isFlushScheduled = false;
  /** In place of loops that a refusal has ended: what came since, for the next ones. @type {LineReader[]} */
  #interrupted = [];
  /** @type {number | undefined} */
  #endTimer;
  #signal;

  /**
   * @param {string} address That of the gateway or of its stream: `http(s)://` or `ws(s)://`.
   * @param {SessionOptions} [options]
   */
  constructor(address, options = {}) {
    const send = (/** @type {object} */ message, mostBytes = Infinity) => this.#connection.send(message, mostBytes);
    this.#meeting = options.meeting ?? "";
    this.#host = options.host ?? "";
    this.#guest = options.guest ?? "";
    this.#title = options.title ?? "";
    this.#signal = options.signal;
    this.#signal?.addEventListener("abort", () => this.#connection.close());
    this.#settings = new SessionSettings(options);
    this.#starter = new SessionStarter(
      options.token,
      (token) => this.#sendStart(token),
      (none) => this.#onNoToken(none),
    );
    this.#refresher = new SessionRefresher(options.token, send);
    this.#utterances = new UtteranceSender({
      isOpen: () => this.state === "open",
      send,
      emit: (event) => this.#emitter.emit(event),
      flush: () => this.#flush(),
    });
    this.#connection = new Connection(address, options, {
      opening: () => {
        this.#status.enter("connecting");
        return this.#starter.prepare();
      },
      notReady: (none) => this.#onNoToken(none),
      opened: () => this.#starter.send(),
      received: (message) => this.#onMessage(message),
      probe: () => this.#probe(),
      stalled: (isStalled) => {
        this.#status.enter("open", isStalled ? UNANSWERED : null);
        if (isStalled) this.#utterances.reportWaiting(true);
      },
      lost: (mayReconnect, reason) => this.#onLost(mayReconnect, this.#lastError ?? saidAtClose(reason)),
    });
  }

  get state() {
    return this.#status.state;
  }

  /** What the gateway accepts. Null before the first session started. @returns {Limits | null} */
  get limits() {
    return this.#utterances.limits;
  }

  /** What the newest session started with: languages, options, limits. Null before the first one. */
  get started() {
    return this.#started;
  }

  /** The meeting's id. Empty before the first session started, unless it was given. */
  get meeting() {
    return this.#meeting;
  }

  /** This client's public id. Empty before the first session started. */
  get participant() {
    return this.#participants.own;
  }

  /** How many finals the gateway has not accepted yet. */
  get unsent() {
    return this.#utterances.unsent;
  }

  // The values that were asked for last. They are in force once the gateway has confirmed them.

  get name() {
    return this.#settings.name.wanted;
  }

  get speaks() {
    return this.#settings.speaks.wanted;
  }

  get reads() {
    return this.#settings.reads.wanted;
  }

  get stability() {
    return this.#settings.stability.wanted;
  }

  /**
   * Listen to the events of one type. Refusals that no listener hears are written to the console.
   * @template {keyof ClientEventMap} T
   * @param {T} type
   * @param {(event: ClientEventMap[T]) => void} listener
   * @param {ListenOptions} [options]
   * @returns {() => void} Removes the listener.
   */
  on(type, listener, options) {
    return this.#emitter.on(type, listener, options);
  }

  /**
   * Listen to all events.
   * @param {(event: ClientEvent) => void} listener
   * @param {ListenOptions} [options]
   * @returns {() => void} Removes the listener.
   */
  listen(listener, options) {
    return this.#emitter.listen(listener, options);
  }

  /**
   * Everything in the languages that are read, while it is being said, for `for await`: a line for each change of its
   * text. Translations, and captions of what is said in a language that is read. Connects, if that was not done. The loop
   * ends as the session does. It throws a `SessionError` for what is refused for good, after which another loop goes on,
   * and where the session is over for another reason than `close`. A refused command of a host ends no loop.
   * @returns {AsyncIterableIterator<Line, void>}
   */
  lines() {
    return this.#read(() => true);
  }

  /**
   * As `lines`, but only what is complete; a failed translation is a line with its `failure`.
   * @returns {AsyncIterableIterator<Line, void>}
   */
  finals() {
    return this.#read((line) => line.final);
  }

  /** Connect, or try again now. If there is a connection, check that it is alive. */
  connect() {
    if (this.state === "closed") for (const reader of this.#interrupted.splice(0)) reader.return();
    if (!this.#signal?.aborted) this.#connection.open();
  }

  /**
   * End the session: send what was said, let the gateway finish what it accepted, and close. Without a session, or when
   * called again, close at once.
   */
  close() {
    this.#lastError = null; // it is not why the session ends
    if (this.state !== "open" || this.#ending !== "no") return this.#connection.close();
    this.#ending = "wanted";
    this.#connection.leave();
    this.#flush();
  }

  /** Choose the languages to translate into. @param {readonly string[]} reads */
  read(reads) {
    this.#change({ reads: [...reads] });
  }

  /** Choose what is shown of an utterance before it is final. @param {Stability} stability */
  setStability(stability) {
    this.#change({ stability });
  }

  /** Choose the language that others see as spoken. @param {string | null} speaks */
  speak(speaks) {
    this.#change({ speaks });
  }

  /** Choose the name that others see. @param {string} name */
  rename(name) {
    this.#change({ name });
  }

  /**
   * Change how is translated, from the next utterance on. What is left out stays as it was.
   * @param {TranslationOptions} options
   */
  setOptions(options) {
    this.#change(options);
  }

  /**
   * Send what was said so far. If several come quickly, only the newest is sent. One that the gateway refuses is dropped.
   * @param {Said} said `id`: the utterance to revise. Without one, a new utterance begins.
   * @returns {string} The utterance's id.
   */
  partial(said) {
    this.#scheduleFlush();
    return this.#utterances.partial({ lang: this.speaks ?? "", ...said });
  }

  /**
   * Send a complete utterance, after those before it were answered, and again until it is accepted or refused for good.
   * One without text cancels what was begun. With `replaces` it corrects an utterance that was accepted, for everybody and in
   * the transcript; without text it takes it back. `participant`: as whom it was said, if that was an earlier session of the
   * same person, who has the same `person`.
   * @param {Said} said `id`: an utterance that began with `partial`, or one to try again.
   * @returns {string} The utterance's id.
   */
  final(said) {
    if (this.#ending === "no") this.#scheduleFlush();
    return this.#utterances.final({ lang: this.speaks ?? "", ...said }, this.#ending === "no" ? null : ENDED);
  }

  /**
   * Stop translating an utterance. Its missing translations arrive as `translation.failed`. An utterance that is not
   * accepted yet is refused, and all clients that have seen it get `utterance.cancelled`.
   * @param {string} id
   */
  cancel(id) {
    this.#utterances.cancel(id);
  }

  // What only a host may do. Without a session nothing happens; what the gateway refuses comes as an event `error`.

  /** Remove a participant, who cannot come back with the same token. @param {string} participant */
  remove(participant) {
    this.#command({ type: "participant.remove", participant });
  }

  /**
   * Have what a participant says refused (`muted`), or taken again. `participant.updated` follows.
   * @param {string} participant
   * @param {boolean} muted
   */
  mute(participant, muted) {
    this.#command({ type: "participant.mute", participant, muted });
  }

  /** Let nobody else in, or let them in again. `meeting.locked` follows, for all. @param {boolean} locked */
  lock(locked) {
    this.#command({ type: "meeting.lock", locked });
  }

  /** Say what the meeting is called, empty: in no way. `meeting.titled` follows. @param {string} title */
  entitle(title) {
    this.#command({ type: "meeting.title", title });
  }

  /** End the meeting for everyone in it: `state` is `closed` then, with the code `meeting_ended`. */
  endMeeting() {
    this.#command({ type: "meeting.end" });
  }

  /** @param {(line: Line) => boolean} isWanted */
  #read(isWanted) {
    const reading = this.#interrupted.shift() ?? this.#reader();
    reading.begin(isWanted);
    if (this.#signal?.aborted) reading.return();
    this.#signal?.addEventListener("abort", () => reading.return());
    if (this.state === "closed" && !reading.hasEnded) this.connect();
    return reading;
  }

  /** @returns {LineReader} */
  #reader(lines = this.#newLines()) {
    return new LineReader(
      (event) => lines.apply(event),
      (listener, hears) => this.#emitter.follow(listener, hears),
      () => this.#interrupted.push(this.#reader(lines)),
    );
  }

  #newLines() {
    const reader = { reads: this.reads, originals: this.#settings.originals.wanted };
    return new Lines(reader, (participant) => this.#nameOf(participant));
  }

  /** @param {string} participant */
  #nameOf(participant) {
    return participant === this.participant ? this.name : (this.participants.get(participant)?.name ?? "");
  }

  // ---- sending

  /** @param {object} message */
  #command(message) {
    if (this.state !== "open") return;
    this.#hasCommanded = true;
    this.#connection.send(message);
  }

  /** @param {{token?: string}} credentials */
  #sendStart(credentials) {
    const settings = this.#settings.requestAll(credentials.token !== undefined);
    const [host, guest, title] = [this.#host, this.#guest, this.#title];
    this.#connection.send({
      type: "session.start",
      meeting: this.#meeting || null,
      ...settings,
      resume: this.#position.resume,
      ...(host && { host }),
      ...(guest && { guest }),
      ...(title && { title }),
      ...credentials,
    });
  }

  /** @param {Settings} wanted */
  #change(wanted) {
    this.#settings.want(wanted);
    this.#scheduleFlush();
  }

  /** Send what is due after the current task, so that several changes become one message. */
  #scheduleFlush() {
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    queueMicrotask(() => {
      this.#isFlushScheduled = false;
      this.#flush();
    });
  }

  #flush() {
    if (this.state !== "open" || this.#isDraining || this.#ending === "sent") return this.#utterances.reportWaiting();
    if (this.#ending === "no" && this.#sendSettings()) return;
    const hasFinal = this.#utterances.sendFinal();
    if (this.#ending === "no") {
      this.#utterances.sendPartials();
    } else if (!hasFinal) {
      this.#ending = "sent";
      this.#connection.send({ type: "session.end" });
    }
  }

  /** @returns {boolean} Whether the session continues on a new connection, to change what no update can. */
  #sendSettings() {
    if (this.#settings.needRestart) {
      this.#onDisconnected();
      this.#connection.replace();
      return true;
    }
    const changed = this.#settings.requestChanged();
    if (changed !== null) this.#connection.send({ type: "session.update", ...changed });
    return false;
  }

  /** The gateway must answer, or the connection is lost. */
  #probe() {
    if (this.state === "open") this.#pinger.ping();
    // A start that the gateway refused for the moment is sent again; any other is still to be answered.
    else if (this.#starter.isWaiting) this.#starter.send();
  }

  // ---- receiving

  /** @param {ServerMessage} message */
  #onMessage(message) {
    this.#lastError = message.type === "error" ? message : null;
    if (message.type === "session.started") return this.#onStarted(message);
    if (message.type === "utterance.replaced") {
      const replaced = this.#position.replace(message);
      return replaced === null ? undefined : this.#emitter.emit(replaced);
    }
    if (!this.#position.isNew(message)) return;
    this.#participants.onMessage(message);
    this.#refresher.onMessage(message);
    this.#pinger.onMessage(message);
    if ("participant" in message && message.participant === this.participant) this.#utterances.onOwn(message);
    switch (message.type) {
      case "session.updated":
        return this.#onUpdated(message);
      case "session.draining":
        this.#isDraining = true;
        break;
      case "session.muted":
        if (message.muted) this.#utterances.onMuted();
        break;
      case "utterance.accepted":
        if (!this.#utterances.onAccepted(message.id)) return;
        this.#emitter.emit(message);
        return this.#flush();
      case "error":
        return this.#onError(message);
    }
    // Messages of a newer gateway that this client does not know are passed on, too.
    this.#emitter.emit(message);
  }

  /** @param {SessionStarted} message */
  #onStarted(message) {
    this.#started = message;
    this.#position.started(message);
    this.#connection.sessionStarted();
    this.#settings.confirm();
    if (message.record === false) this.#settings.keepUnrecorded();
    this.#utterances.limits = message.limits;
    this.#meeting = message.meeting;
    const { name, speaks, reads } = this;
    const gone = this.#participants.start(message, { name, speaks, reads: [...reads] });
    this.#status.assume("open");
    this.#emitter.emit(message);
    if (this.state !== "open") return; // a listener closed it
    for (const participant of gone) this.#emitter.emit({ ...participant, type: "participant.left" });
    this.#status.enter("open");
    this.#utterances.onSessionStarted(message.recovered === true);
    if (message.muted === true) this.#utterances.onMuted();
    this.#pinger.ping(); // its answer comes after everything that was missed
    this.#flush();
  }

  /** @param {SessionUpdated} message */
  #onUpdated(message) {
    this.#settings.confirm();
    this.#emitter.emit(message);
    this.#flush();
  }

  /** @param {GatewayError} error */
  #onError(error) {
    if (error.utterance) return this.#utterances.onRefused(error.utterance, error);
    if (error.code === "token_expired") return;
    if (OVER.has(error.code)) return this.#connection.close();
    if (this.state !== "open") return this.#onStartRefused(error);
    if (UNSOLICITED.has(error.code)) return this.#emitter.emit(error);
    // It may have been the command, which is not sent again: what a host meant then need not hold any more.
    const isTold = error.retryable && this.#hasCommanded;
    this.#hasCommanded = false;
    if (isTold) this.#emitter.emit(error);
    const isSettled = UNREADABLE.has(error.code) && !error.field && this.#utterances.onUnreadable(error);
    if (this.#refresher.onError(error)) return;
    const isPingRefused = this.#pinger.onError(error);
    // The error may not say which message it answers. It does no harm to send both again.
    if (this.#settings.mayRefuseUpdate(error)) return this.#onUpdateRefused(error);
    if (isSettled) return;
    if (error.code === "rate_limited" && this.#ending === "sent") {
      this.#endTimer = setTimeout(() => {
        this.#ending = "wanted";
        this.#flush();
      }, refusalDelayMs(error));
    } else if (!isPingRefused && !isTold) this.#emitter.emit(error);
  }

  /** @param {GatewayError} error */
  #onUpdateRefused(error) {
    if (error.retryable) return this.#settings.retryUpdate(error, () => this.#flush());
    this.#settings.refuse(error);
    this.#settings.endUpdate();
    this.#emitter.emit(error);
    this.#flush();
  }

  /** @param {GatewayError} error */
  #onStartRefused(error) {
    if (!error.retryable) {
      const canStart = !NO_ACCESS.has(error.code) && this.#settings.refuse(error);
      this.#emitter.emit(error);
      return canStart ? this.#starter.send() : this.#connection.close();
    }
    // A draining gateway closes the connection next. Trying again on it is pointless.
    if (error.code === "draining") return;
    this.#status.enter("loading", error);
    this.#starter.sendLater(refusalDelayMs(error));
  }

  /** @param {NoToken} reason */
  #onNoToken({ message, permanent }) {
    this.#lastError = { type: "error", code: "token_unavailable", message };
    this.#connection.fail(!permanent);
  }

  // ---- the connection

  /**
   * Where no session ever began: a server that has no stream will not have one at the next attempt. A scheme or a port
   * that is wrong is said, once it is known, and tried again, as the server may be starting.
   */
  async #checkAddress() {
    const { url } = this.#connection;
    const isMissing = await isNotFound(url);
    // What was wrong may be right meanwhile. Where nothing is known, looking again would only fill a browser's console.
    const reason = isMissing || this.#outage === null ? null : await misaddressed(url);
    if (this.#started !== null || this.state === "closed") return;
    if (isMissing) {
      this.#lastError = { type: "error", ...notFound(url) };
      this.#connection.fail(false);
      return;
    }
    this.#outage = reason;
    if (reason !== null && this.state === "reconnecting") this.#status.enter("reconnecting", reason);
  }

  /** What was sent over the lost connection may not have arrived. */
  #onDisconnected() {
    this.#starter.onDisconnected();
    this.#refresher.stop();
    clearTimeout(this.#endTimer);
    this.#pinger.onDisconnected();
    this.#isDraining = false;
    this.#lastError = null;
    this.#settings.endUpdate();
    this.#settings.withdraw();
    this.#utterances.onDisconnected();
  }

  #onLost(/** @type {boolean} */ mayReconnect, /** @type {Reason | null} */ error) {
    this.#onDisconnected();
    if (mayReconnect) {
      const isUnopened = this.#started === null && this.state === "connecting";
      error ??= (isUnopened && this.#outage) || outage(this.state);
      if (this.#connection.openLater(error.retry_after_ms ?? 0)) {
        if (error.code === "unreachable" && this.#started === null && this.#connection.isPlain) this.#checkAddress();
        this.#status.enter("reconnecting", error);
        return this.#flush();
      }
    }
    this.#ending = "no";
    this.#position.endSession();
    this.#settings.endSession();
    this.#utterances.onSessionEnded({ ...ENDED, ...(error && { message: error.message }) });
    this.#status.enter("closed", error);
  }
}
