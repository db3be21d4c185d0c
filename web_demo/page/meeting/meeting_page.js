// The meeting page: wires what people do to the client, and what the client hears to the page. Knows every part;
// must not know how any of them does its work.

import { Announcer } from "../transcript/screen_reader_announcer.js";
import { GatewayClient } from "../../client/gateway_client.js";
import { Composer } from "../speaking/composer.js";
import { Downloads } from "../transcript/transcript_download.js";
import { button, element, find } from "../ui/dom.js";
import { EnginePanel } from "../engine/engine_panel.js";
import { Flights, MEETING } from "../engine/utterance_tracker.js";
import { askToJoin } from "../people/join_dialog.js";
import { Latency } from "../engine/latency.js";
import { LoadSpeakers } from "../samples/simulated_speakers.js";
import { invitedTo, newMeeting, partIn, settleIn } from "./meeting_address.js";
import { hideNotice, showNotice, withdrawNotice } from "../status/alert.js";
import { People } from "../people/people_list.js";
import { ReadingChoice } from "../settings/reading_settings.js";
import { SamplePlayer } from "../samples/sample_meeting_player.js";
import { ShareDialog } from "../people/share_dialog.js";
import { SidePanel } from "./side_panel.js";
import { UNREADY, showStatus } from "../status/status_label.js";
import { recall } from "../ui/preferences.js";
import { Transcript } from "../transcript/transcript.js";
import { TranscriptView } from "../transcript/transcript_view.js";
import { stayAwake } from "./wake_lock.js";
import { Welcome } from "./empty_state.js";

/** @typedef {import("../settings/display_settings.js").Appearance} Appearance */
/** @typedef {import("../../client/events.js").ClientEvent} ClientEvent */
/** @typedef {import("../../client/events.js").StateChanged} StateChanged */
/** @typedef {import("../../client/messages.js").GatewayError} GatewayError */
/** @typedef {import("../../client/messages.js").Limits} Limits */
/** @typedef {import("../ui/languages.js").Language} Language */
/** @typedef {import("../status/loading_card.js").LoadingCard} LoadingCard */
/** @typedef {import("../status/readiness_poller.js").Readiness} Readiness */
/** @typedef {import("../status/readiness_poller.js").ReadinessWatch} ReadinessWatch */
/** @typedef {import("../settings/reading_settings.js").Reading} Reading */

const main = find("main", HTMLElement);
const actions = find("actions", HTMLDivElement);

/** What notices are about that are void once there is a session again. */
const RETURNING = "returning";

/** @typedef {{languages: Language[], family: string, limits: Limits}} Known What the gateway says of itself. */

export class MeetingPage {
  #known;
  #watch;
  #card;
  #invited;
  /** @type {Readiness} */
  #readiness = { status: "ready", reason: "" };
  /** @type {Map<string, string>} */
  #names;
  /** @type {GatewayClient} */
  #client;
  #transcript = new Transcript();
  #latency = new Latency();
  #flights = new Flights((_flight, timings, nowMs) => this.#latency.note(timings, nowMs));
  #reading;
  #view;
  #announcer;
  #composer;
  #engine;
  #load;
  #sample;
  #panel;
  #share;
  /** What was read before the sample meeting began. @type {Reading | null} */
  #before = null;
  #joined = false;

  #element = element("div", "meeting");
  #banner = element("div", "banner");
  #bannerWords = element("span", "");
  #speaking = element("div", "speaking");
  #listening = element("p", "listening hint");
  #play = button("quiet", "▶ Sample meeting", "sample", () => this.#togglePlay());

  /**
   * @param {object} parts
   * @param {string} parts.streamUrl
   * @param {URLSearchParams} parts.query
   * @param {Known} parts.known
   * @param {Appearance} parts.appearance
   * @param {ReadinessWatch} parts.watch
   * @param {LoadingCard} parts.card
   */
  constructor({ streamUrl, query, known, appearance, watch, card }) {
    this.#known = known;
    this.#watch = watch;
    this.#card = card;
    this.#invited = invitedTo(query);
    if (query.has("meeting") && this.#invited === null) {
      showNotice("The link's meeting cannot be: its id has other characters than letters, digits and . _ ~ -");
    }
    const { languages } = known;
    this.#names = new Map(languages.map(({ tag, name }) => [tag, name]));
    const nameOf = this.#nameOf;
    const meeting = () => this.#client.meeting;
    const offered = () => languages;

    this.#reading = new ReadingChoice({ languages, nameOf, onChange: (reading) => this.#onChoice(reading) });
    this.#reading.limit = known.limits.languages;
    const { reads, stability } = this.#reading.value;
    this.#client = new GatewayClient(streamUrl, {
      meeting: this.#invited ?? newMeeting(),
      name: recall("name") ?? "",
      reads,
      stability,
      originals: true,
    });
    this.#client.listen((event) => this.#onEvent(event));
    this.#client.listen((event) => this.#transcript.hear(event));

    this.#view = new TranscriptView({
      transcript: this.#transcript,
      nameOf,
      onCancel: (entry) => this.#client.cancel(entry.utterance),
    });
    this.#announcer = new Announcer({ transcript: this.#transcript });
    this.#composer = new Composer({
      client: this.#client,
      object: showNotice,
      onLang: (lang) => this.#client.speak(lang),
    });
    this.#composer.offer(languages, { demo: known.family === "bundled" });
    this.#share = new ShareDialog({ meeting, languages: offered, object: showNotice });
    const people = new People({ client: this.#client, nameOf });
    const downloads = new Downloads({
      meeting,
      languages: offered,
      nameOf,
      reads: () => this.#reading.value.reads,
      object: showNotice,
    });
    this.#load = new LoadSpeakers({
      streamUrl,
      languages,
      hear: (source, event) => this.#measure(source, event),
    });
    this.#engine = new EnginePanel({ flights: this.#flights, latency: this.#latency, nameOf, load: this.#load });
    this.#sample = new SamplePlayer({
      streamUrl,
      meeting,
      onState: (playing) => this.#onPlaying(playing),
      object: showNotice,
    });
    this.#panel = new SidePanel([
      { id: "reading", name: "Reading", content: [this.#reading.element, appearance.element] },
      { id: "people", name: "People", content: [people.element, downloads.element] },
      { id: "engine", name: "Engine", content: [this.#engine.element] },
    ]);
    this.#assemble();
    this.#applyReading(this.#reading.value);
  }

  /** Take part: at once in a meeting of one's own, after a question in that of a link. */
  async join() {
    const id = this.#client.meeting;
    let part = this.#invited === null ? "speak" : partIn(id);
    if (part === "") {
      const { languages, limits } = this.#known;
      const options = { languages, nameOf: this.#nameOf, meeting: id, nameChars: limits.name_chars };
      const answer = await askToJoin(options);
      this.#client.rename(answer.name);
      if (recall("reads") === null || !this.#reading.value.reads.includes(answer.lang)) {
        this.#read({ reads: [answer.lang] });
      }
      part = answer.speaks ? "speak" : "listen";
    } else if (this.#invited === null && recall("reads") === null) {
      // Who comes to have a look sees something translated, whatever they speak.
      const { reads } = this.#reading.value;
      const most = Math.min(Math.max(3, reads.length), this.#known.limits.languages);
      this.#read({ reads: [...new Set([...reads, ...this.#tags])].slice(0, most) });
    }
    this.#joined = true;
    stayAwake();
    settleIn(id, part);
    if (part === "listen") this.#listen();
    this.#card.element.hidden = true;
    this.#element.hidden = false;
    this.#client.connect();
    if (matchMedia("(hover: hover)").matches && document.activeElement === document.body) this.#composer.focus();
  }

  /** @param {Readiness} readiness */
  onReadiness(readiness) {
    const before = this.#readiness.status;
    this.#readiness = readiness;
    if (readiness.status === "ready" && before !== "ready") this.look();
    this.#showState();
  }

  /** Make sure of the connection. */
  look() {
    if (this.#joined && this.#client.state !== "closed") this.#client.connect();
  }

  // ---------------------------------------------------------------- what stands where

  #assemble() {
    const stage = element("section", "stage");
    stage.ariaLabel = "Meeting";
    this.#banner.dataset.testid = "banner";
    this.#banner.role = "status";
    this.#banner.hidden = true;
    const retry = button("quiet", "Try now", "retry", () => {
      this.#client.connect();
      void this.#watch.check();
      this.#focus(); // the button goes as soon as that succeeds
    });
    this.#banner.append(this.#bannerWords, " ", retry);
    stage.append(this.#view.element, this.#banner);
    const welcome = new Welcome({
      play: () => this.#togglePlay(),
      invite: () => this.#share.open(),
      speak: () => this.#speakToo(),
    });
    this.#view.empty.append(welcome.element);

    this.#listening.hidden = true;
    this.#listening.append("You are listening. ", button("quiet", "Speak, too", "speak-too", () => this.#speakToo()));
    this.#speaking.append(this.#listening, this.#composer.element);

    this.#element.hidden = true;
    this.#element.append(stage, this.#speaking, this.#panel.element);
    main.append(this.#element, this.#announcer.element);
    const share = button("quiet", "Share", "share", () => this.#share.open());
    const options = button("quiet", "Options", "options", () => this.#panel.toggle());
    this.#panel.openedBy(options);
    actions.append(this.#play, share, options);
    window.addEventListener("beforeunload", (event) => {
      if (this.#client.unsent > 0) event.preventDefault(); // the browser asks whether to stay
    });
    window.addEventListener("pagehide", (event) => {
      if (event.persisted) return;
      this.#sample.stop(true);
      this.#load.stop(true);
      this.#client.close();
      this.#client.close(); // there is no time to wait for answers
    });
  }

  get #tags() {
    return [...this.#names.keys()];
  }

  /** @param {string} tag */
  #nameOf = (tag) => this.#names.get(tag) ?? tag;

  // ---------------------------------------------------------------- reading and speaking

  /** @param {Partial<Reading>} changes */
  #read(changes) {
    this.#reading.set(changes);
    this.#onReading(this.#reading.value);
  }

  /** @param {Reading} reading */
  #onChoice(reading) {
    this.#before = null; // what is chosen during the sample meeting holds after it
    this.#onReading(reading);
  }

  /** @param {Reading} reading */
  #onReading(reading) {
    this.#client.read(reading.reads);
    this.#client.setStability(reading.stability);
    this.#applyReading(reading);
  }

  /** @param {Reading} reading */
  #applyReading({ reads, stability, originals, announce }) {
    this.#view.show({ columns: reads, originals, stability });
    this.#announcer.lang = announce;
  }

  /** Whatever had the focus is gone. */
  #focus() {
    if (!this.#composer.element.hidden) return this.#composer.focus();
    const transcript = this.#view.element.querySelector("[tabindex]");
    if (transcript instanceof HTMLElement) transcript.focus();
  }

  #listen() {
    this.#client.speak(null);
    this.#composer.element.hidden = true;
    this.#listening.hidden = false;
  }

  #speakToo() {
    settleIn(this.#client.meeting, "speak");
    this.#composer.element.hidden = false;
    this.#listening.hidden = true;
    this.#client.speak(this.#composer.lang);
    this.#composer.focus();
  }

  #togglePlay() {
    hideNotice();
    if (this.#sample.playing) this.#sample.stop();
    else this.#sample.start(this.#tags);
  }

  /** @param {boolean} playing */
  #onPlaying(playing) {
    this.#play.textContent = playing ? "■ Stop sample" : "▶ Sample meeting";
    if (playing && this.#before === null) {
      // At its best: every language for which there is room, what was said among them.
      this.#before = this.#reading.value;
      const most = matchMedia("(min-width: 40rem)").matches ? (this.#client.limits?.languages ?? Infinity) : 2;
      const all = [...new Set([...this.#before.reads, ...this.#tags])].slice(0, most);
      if (matchMedia("(max-width: 90rem)").matches) this.#panel.close();
      this.#read({ reads: all, originals: false });
    } else if (!playing && this.#before !== null) {
      this.#read(this.#before);
      this.#before = null;
    }
  }

  // ---------------------------------------------------------------- what the client hears

  /** @param {ClientEvent} event */
  #onEvent(event) {
    if (event.type === "session.started") this.#flights.reads(MEETING, this.#client.reads);
    this.#measure(MEETING, event);
    switch (event.type) {
      case "state":
        this.#onState(event);
        break;
      case "session.updated":
        if (this.#before === null) this.#reading.keep();
        break;
      case "pong":
        this.#announcer.begin(); // what was said before one came is not read out
        break;
      case "session.draining":
        showNotice("The gateway is restarting. It finishes what was said; this page reconnects by itself.", RETURNING);
        break;
      case "translation.failed":
        if (event.code === "engine_unavailable") void this.#watch.check();
        break;
      case "error":
        this.#onError(event);
        break;
      case "session.started":
      case "participant.joined":
      case "participant.left":
        this.#panel.rename("people", `People ${this.#client.participants.size + 1}`);
        break;
    }
  }

  /** @param {StateChanged} change */
  #onState({ state, reason, code, field }) {
    this.#showState();
    this.#composer.enabled = state !== "closed";
    if (state === "reconnecting" || state === "loading") void this.#watch.check();
    if (state === "closed" && reason && !this.#startOtherwise(code, field)) showNotice(reason, RETURNING);
    if (state !== "open") return;
    withdrawNotice(RETURNING);
    this.#composer.limits = this.#client.limits;
    if (this.#before === null) this.#reading.keep();
  }

  /**
   * What one chose at another time may be too much for this gateway or this meeting: then with less.
   * @param {string} code
   * @param {string} field
   * @returns {boolean} Whether there is less to try.
   */
  #startOtherwise(code, field) {
    const { reads, name } = this.#client;
    if (field.startsWith("reads") && reads.length > 0) {
      // Other languages than those this page knows: of another gateway than the one it came from.
      if (code === "unsupported_language") location.reload();
      this.#read({ reads: reads.slice(0, reads.length > 1 ? 1 : 0) });
      showNotice("Not all of your languages can be read in this meeting. Choose others under Options, Reading.");
    } else if (field === "name" && name !== "") {
      this.#client.rename([...name].slice(0, this.#known.limits.name_chars).join(""));
    } else {
      return false;
    }
    queueMicrotask(() => this.#client.connect());
    return true;
  }

  /** @param {GatewayError} error */
  #onError({ code, field, message }) {
    if (code === "draining") return; // said in the page's own words
    if (field?.startsWith("reads")) {
      this.#reading.set({ reads: [...this.#client.reads] });
      this.#applyReading(this.#reading.value);
    }
    showNotice(message, code === "engine_restarting" ? RETURNING : "");
  }

  /**
   * @param {string} source
   * @param {ClientEvent} event
   */
  #measure(source, event) {
    this.#flights.hear(source, event, performance.now());
  }

  #showState() {
    const [state, words, banner] = this.#describe();
    showStatus(state, words);
    this.#engine.connection = { state, words };
    this.#banner.hidden = banner === "";
    this.#banner.dataset.state = state;
    if (this.#bannerWords.textContent !== banner) this.#bannerWords.textContent = banner;
  }

  /** @returns {["good" | "busy" | "bad", string, string]} State, in a word, and a sentence where people have to know. */
  #describe() {
    const { status, reason } = this.#readiness;
    if (!this.#joined) return ["busy", "Not joined yet", ""];
    if (status === "failed" || status === "draining") {
      const [state, words] = UNREADY[status];
      return [state, words, reason || words];
    }
    switch (this.#client.state) {
      case "open":
        return ["good", "Connected", ""];
      case "connecting":
        return ["busy", "Connecting…", ""];
      case "loading":
        return ["busy", "Engine loading", "The engine is loading; what you say is kept until it is ready."];
      case "reconnecting":
        return ["busy", "Reconnecting…", "The connection is lost. What you say is kept and sent; what you miss comes."];
      case "closed":
        return ["bad", "Disconnected", "Disconnected."];
    }
  }
}
