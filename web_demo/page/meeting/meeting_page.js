// The meeting page: connects its parts with the client and with each other. Knows every part; must not know how any of
// them works.

import { GatewayClient } from "../../client/gateway_client.js";
import { allowedOf, refusalOf } from "../access/access.js";
import { guestSecret } from "../access/guest.js";
import { addressNote } from "../engine/address_note.js";
import { EngineMonitor } from "../engine/engine_monitor.js";
import { modelLine } from "../engine/model_line.js";
import { askToJoin } from "../people/join_dialog.js";
import { confirmed } from "../people/confirm_dialog.js";
import { HostControls } from "../people/host_controls.js";
import { askForTitle, MeetingTitle } from "../people/meeting_title.js";
import { rememberParticipant } from "../people/own_participants.js";
import { PeopleList } from "../people/people_list.js";
import { saveRemoval, wasRemoved } from "../people/removals.js";
import { ShareDialog } from "../people/share_dialog.js";
import { ReadingSettings } from "../settings/reading_settings.js";
import { skipLinks } from "../settings/skip_links.js";
import { Composer, segmentOf } from "../speaking/composer.js";
import { gatewaysDetector } from "../speaking/other_language.js";
import { hideAlert, showAlert, withdrawAlert } from "../status/alert.js";
import { ConnectionBanner } from "../status/connection_banner.js";
import { EarlierRows } from "../transcript/earlier.js";
import { ScreenReaderAnnouncer } from "../transcript/screen_reader_announcer.js";
import { SpokenTranslation } from "../transcript/spoken_translation.js";
import { Transcript } from "../transcript/transcript.js";
import { saveShownButton, TranscriptDownload } from "../transcript/transcript_download.js";
import { TranscriptView } from "../transcript/transcript_view.js";
import { button, element, find } from "../ui/dom.js";
import { loadPreference } from "../ui/preferences.js";
import { t } from "../words/words.js";
import { DemoControls, HAS_DEMO_CONTROLS } from "./demo_controls.js";
import { EmptyState } from "./empty_state.js";
import { hasOpened, hostKeyOf, joinedRole, meetingIdIn, recordIn, saveJoined, titleIn } from "./meeting_address.js";
import { showControlsOnTouch } from "./landscape.js";
import { LastScreen } from "./last_screen.js";
import { mendStart } from "./mend_start.js";
import { OfferedLanguages } from "./offered_languages.js";
import { Recording } from "./recording.js";
import { SidePanel } from "./side_panel.js";
import { SpeakingArea } from "./speaking_area.js";
import { stopOnLeave } from "./stop_on_leave.js";
import { keepScreenAwake } from "../ui/wake_lock.js";

/** @import {ClientEvent, StateChanged} from "../../client/events.js" */
/** @import {GatewayError, LanguagesChanged, Limits, SessionStarted} from "../../client/messages.js" */
/** @import {Access} from "../access/access.js" */
/** @import {Entry} from "../transcript/entry.js" */
/** @import {DisplaySettings} from "../settings/display_settings.js" */
/** @import {Reading, Targets} from "../settings/reading_settings.js" */
/** @import {LoadingCard} from "../status/loading_card.js" */
/** @import {Readiness, ReadinessPoller} from "../status/readiness_poller.js" */
/** @import {Language} from "../ui/languages.js" */

const main = find("main", HTMLElement);
const actions = find("actions", HTMLDivElement);

/** Why an alert was shown that is out of date as soon as there is a session again. */
const UNTIL_RECONNECTED = "until reconnected";
/** In a meeting of one's own: the first language, and another, to see something translated. */
const FIRST_LANGUAGES = 2;

/** @typedef {{languages: Language[], model: string, family: string, limits: Limits, targets?: Targets}} GatewayInfo `/v1/languages`. */

export class MeetingPage {
  #gateway;
  #access;
  #readinessPoller;
  #loadingCard;
  /** The meeting that a link leads to; null in a meeting of one's own. */
  #invitedTo;
  /** Whether this page has opened the meeting. */
  #isHost;
  #hostKey;
  /** @type {Readiness["status"]} */
  #readiness = "ready";
  #offered;
  /** @type {GatewayClient} */
  #client;
  #title;
  #transcript = new Transcript((id) =>
    id === this.#client.participant ? this.#client.name : this.#client.participants.get(id)?.name,
  );
  #readingSettings;
  #view;
  #announcer;
  #spoken;
  #composer;
  #speaking;
  #engineMonitor;
  #demo;
  #sidePanel;
  #shareDialog;
  /** Null where the link is not to be given to others. @type {HTMLButtonElement | null} */
  #share;
  #recording;
  #people;
  #emptyState;
  #download;
  #earlier;
  #hasJoined = false;
  #isLeaving = false;
  /** When the session began, in ms since 1970; null before. @type {number | null} */
  #startedMs = null;
  #lastScreen = new LastScreen(() => this.#joinAgain());

  #element = element("div", "meeting");
  #skipLinks = skipLinks({
    onTranscript: () => this.#focusTranscript(),
    onLanguages: () => this.#sidePanel.show("reading"),
  });
  #banner = new ConnectionBanner({
    onRetry: () => this.#retry(),
    onWords: (words) => (this.#engineMonitor.connection = words),
  });

  /**
   * @param {object} parts
   * @param {string} parts.streamUrl
   * @param {URLSearchParams} parts.query
   * @param {Access} parts.access
   * @param {GatewayInfo} parts.gateway
   * @param {DisplaySettings} parts.displaySettings
   * @param {ReadinessPoller} parts.readiness
   * @param {LoadingCard} parts.loadingCard
   * @param {{id: string, hostKey: string}} parts.own A meeting that this page may open.
   */
  constructor({ streamUrl, query, access, gateway, displaySettings, readiness, loadingCard, own }) {
    this.#gateway = gateway;
    this.#access = access;
    this.#readinessPoller = readiness;
    this.#loadingCard = loadingCard;
    this.#invitedTo = access.meeting ?? meetingIdIn(query);
    this.#isHost = this.#invitedTo === null || hasOpened(this.#invitedTo);
    // With a token, the token's roles say who is host.
    this.#hostKey = access.token !== null ? "" : this.#invitedTo === null ? own.hostKey : hostKeyOf(this.#invitedTo);
    const { languages, limits, targets } = gateway;
    this.#offered = new OfferedLanguages(gateway);
    const { nameOf } = this.#offered;
    const meeting = () => this.#client.meeting;
    const { originals, fragment, read: hasCaptions } = access;
    const link = {
      meeting,
      fragment: fragment ?? "",
      more: () => this.#recording.inLink,
      title: () => this.#title.line,
    };
    const offered = () => allowedOf(this.#offered.all, access.langs);
    const onChange = (/** @type {Reading} */ reading) => this.#onChoice(reading);
    this.#readingSettings = new ReadingSettings({
      languages: offered(),
      targets,
      nameOf,
      hasOriginals: originals,
      onChange,
    });
    this.#readingSettings.limit = limits.languages;
    const { reads, stability } = this.#reading;
    this.#client = new GatewayClient(streamUrl, {
      meeting: this.#invitedTo ?? own.id,
      host: this.#hostKey,
      guest: guestSecret(),
      name: access.name || (loadPreference("name") ?? ""),
      reads,
      stability,
      originals,
      ...recordIn(query),
      ...titleIn(query, this.#gateway.limits.name_chars),
      ...(access.token && { token: access.token }),
    });
    this.#title = new MeetingTitle(this.#client);
    this.#client.listen((event) => this.#onEvent(event));
    this.#client.listen((event) => this.#banner.onEvent(event));
    this.#client.listen((event) => this.#transcript.onEvent(event));

    this.#view = new TranscriptView({
      transcript: this.#transcript,
      nameOf,
      onCancel: (entry) => this.#client.cancel(entry.utterance),
      onCorrect: (entry) => this.#correct(entry),
      onTakeBack: (entry) => void this.#takeBack(entry),
    });
    this.#announcer = new ScreenReaderAnnouncer({ transcript: this.#transcript });
    this.#spoken = new SpokenTranslation({ transcript: this.#transcript, nameOf });
    this.#composer = new Composer({
      client: this.#client,
      onProblem: showAlert,
      onLang: (lang) => this.#client.speak(lang),
      detect: gatewaysDetector(access.token),
    });
    this.#offerToSpeaker();
    this.#speaking = new SpeakingArea({ composer: this.#composer, access, onSpeak: () => this.#startSpeaking() });
    this.#shareDialog =
      fragment === null ? null : new ShareDialog({ ...link, languages: offered, onProblem: showAlert, hasCaptions });
    this.#share = fragment === null ? null : button("quiet", t("page.share"), "share", () => this.#shareDialog?.open());
    this.#people = new PeopleList({
      client: this.#client,
      nameOf,
      canRename: access.name === "",
      hasLink: access.token === null,
    });
    const log = { meeting, reads: () => this.#readingSettings.value.reads, onProblem: showAlert, token: access.token };
    this.#download = new TranscriptDownload({ ...log, languages: offered, nameOf });
    this.#earlier = new EarlierRows({ ...log, transcript: this.#transcript });
    this.#view.start.append(this.#earlier.element);
    const kept = { kept: [this.#download.element, this.#earlier.element], mayReadKept: access.transcript };
    this.#recording = new Recording({ client: this.#client, ...kept, mayStart: access.token === null });
    this.#engineMonitor = new EngineMonitor({
      streamUrl,
      languages,
      nameOf,
      maySimulate: () => this.#demo.areAllowed,
      onLook: () => void readiness.check(),
    });
    this.#demo = new DemoControls({
      client: this.#client,
      isHost: access.token === null && this.#isHost, // Those who are invited are people.
      speakers: this.#engineMonitor.speakers,
      onStart: () => this.#sidePanel.makeRoom(),
      sample: {
        streamUrl,
        tags: () => this.#offered.tags,
        maxLanguages: () => this.#client.limits?.languages ?? Infinity,
        reading: () => this.#readingSettings.value,
        onRead: (changes) => this.#setReading(changes),
      },
    });
    this.#readingSettings.element.append(this.#spoken.control);
    this.#readingSettings.element.hidden = !access.read;
    const host = new HostControls(this.#client);
    this.#sidePanel = new SidePanel([
      {
        id: "reading",
        name: t(access.read ? "tab.reading" : "tab.display"),
        content: [this.#readingSettings.element, displaySettings.element],
      },
      {
        id: "people",
        name: t("tab.people"),
        content: [
          this.#people.element,
          host.element,
          host.lockNote,
          button("secondary", t("meeting.leave"), "leave", () => this.#leave()),
          this.#recording.element,
          this.#download.element,
        ],
      },
      {
        id: "engine",
        name: t("tab.engine"),
        content: [modelLine(gateway, this.#isHost && HAS_DEMO_CONTROLS), addressNote(), this.#engineMonitor.element],
      },
    ]);
    const share = this.#shareDialog;
    this.#emptyState = new EmptyState({
      client: this.#client,
      isHost: this.#isHost,
      onPlaySample: () => this.#demo.sample.toggle(),
      onInvite: share && (() => share.open()),
      onSpeak: access.speak ? () => this.#startSpeaking() : null,
      asksForName: this.#isHost && access.speak && !access.name,
      model: modelLine(gateway, this.#isHost && HAS_DEMO_CONTROLS),
    });
    this.#layOut();
    stopOnLeave(this.#client, this.#demo);
    this.#applyReading(this.#reading);
  }

  /** Join: at once in a meeting of one's own, after a question in that of a link. */
  async join() {
    const id = this.#client.meeting;
    if (this.#access.token === null && wasRemoved(id)) {
      this.#loadingCard.element.hidden = true;
      this.#element.hidden = false;
      return this.#showLast("removed");
    }
    let role = this.#invitedTo === null ? "speak" : joinedRole(id);
    if (role === null) role = await this.#askToJoin();
    else if (this.#isHost && loadPreference("reads") === null) this.#readFirstLanguages();
    this.#hasJoined = true;
    keepScreenAwake();
    showControlsOnTouch(this.#view.element);
    saveJoined(id, role, this.#isHost, this.#hostKey);
    if (role === "listen" || !this.#access.speak) this.#listenOnly();
    this.#loadingCard.element.hidden = true;
    this.#element.hidden = this.#skipLinks.hidden = false;
    this.#client.connect();
    if (matchMedia("(hover: hover)").matches && document.activeElement === document.body) this.#composer.focus();
  }

  async #askToJoin() {
    const [meeting, access] = [this.#client.meeting, this.#access];
    if (access.name && !access.read) return access.speak ? "speak" : "listen"; // there is nothing to ask
    const [languages, nameChars] = [allowedOf(this.#offered.all, access.langs), this.#gateway.limits.name_chars];
    const title = askForTitle(meeting, access.token);
    const answer = await askToJoin({ languages, nameOf: this.#offered.nameOf, meeting, title, nameChars, access });
    this.#client.rename(answer.name);
    if (!access.read) return answer.speaks ? "speak" : "listen";
    if (loadPreference("reads") === null || !this.#readingSettings.value.reads.includes(answer.lang)) {
      this.#setReading({ reads: [answer.lang] });
    }
    return answer.speaks ? "speak" : "listen";
  }

  #readFirstLanguages() {
    const { reads } = this.#readingSettings.value;
    const count = Math.min(FIRST_LANGUAGES, this.#gateway.limits.languages);
    this.#setReading({ reads: this.#offered.fill(reads, count) });
  }

  /** @param {Readiness} readiness */
  onReadiness(readiness) {
    const [status, before] = [readiness.status, this.#readiness];
    this.#readiness = status;
    const isInDoubt = status === "unreachable" && this.#client.state === "open";
    if (isInDoubt || (status === "ready" && before !== "ready")) this.checkConnection();
    this.#banner.readiness = this.#engineMonitor.readiness = readiness;
  }

  /** The browser says that the device has a network, or none. @param {boolean} isOnline */
  onNetwork(isOnline) {
    this.#banner.isOffline = !isOnline;
    if (isOnline || this.#client.state === "open") this.checkConnection();
  }

  checkConnection() {
    if (this.#hasJoined && this.#client.state !== "closed") this.#client.connect();
  }

  // ---------------------------------------------------------------- layout

  #layOut() {
    const stage = element("section", "stage");
    stage.ariaLabel = t("page.meeting");
    stage.append(this.#view.element, this.#spoken.element, this.#banner.element);
    this.#demo.add(this.#emptyState.play);
    this.#view.empty.append(this.#emptyState.element);
    this.#element.hidden = true;
    this.#element.append(this.#lastScreen.element, stage, this.#speaking.element, this.#sidePanel.element);
    main.append(this.#element, this.#announcer.element);
    this.#skipLinks.hidden = true;
    document.body.prepend(this.#skipLinks);
    const options = button("quiet", t("page.options"), "options", () => this.#sidePanel.toggle());
    this.#sidePanel.setOpener(options);
    actions.append(
      this.#recording.badge,
      this.#demo.sample.element,
      ...(this.#share === null ? [] : [this.#share]),
      options,
    );
  }

  // ---------------------------------------------------------------- reading and speaking

  /** Without the right to read one sees the own words. @returns {Reading} */
  get #reading() {
    const { value } = this.#readingSettings;
    return this.#access.read ? value : { ...value, reads: [], originals: true, announce: "" };
  }

  /** @param {LanguagesChanged | SessionStarted} now */
  #onLanguages(now) {
    const problem = this.#offered.change(now, this.#client.reads);
    if (problem === null) return;
    this.#readingSettings.offer(allowedOf(this.#offered.all, this.#access.langs), this.#offered.targets);
    this.#offerToSpeaker();
    if (!this.#speaking.isSpeaking) this.#client.speak(null);
    this.#engineMonitor.languages = this.#offered.all;
    if (problem) showAlert(problem);
  }

  #offerToSpeaker() {
    const spoken = allowedOf(this.#offered.with(this.#composer.usual ?? ""), this.#access.speaks);
    this.#composer.offer(spoken, { demo: this.#gateway.family === "bundled", sentences: HAS_DEMO_CONTROLS });
  }

  /** @param {Partial<Reading>} changes */
  #setReading(changes) {
    this.#readingSettings.set(changes);
    this.#onReading(this.#readingSettings.value);
  }

  /** @param {Reading} reading */
  #onChoice(reading) {
    this.#demo.sample.keepReading();
    this.#onReading(reading);
  }

  /** @param {Reading} reading */
  #onReading(reading) {
    const added = reading.reads.filter((tag) => !this.#client.reads.includes(tag));
    this.#client.read(reading.reads);
    this.#client.setStability(reading.stability);
    this.#applyReading(reading);
    void this.#earlier.fill(added);
  }

  /** @param {Reading} reading */
  #applyReading({ reads, stability, originals, announce }) {
    this.#view.show({ reads, originals, stability });
    this.#announcer.lang = announce;
    this.#spoken.offer(reads);
  }

  #listenOnly() {
    this.#client.speak(null);
    this.#showRole(false);
  }

  /** @param {boolean} isSpeaker */
  #showRole(isSpeaker) {
    this.#speaking.show(isSpeaker);
    this.#banner.isReader = this.#emptyState.isReader = !isSpeaker;
  }

  #startSpeaking() {
    saveJoined(this.#client.meeting, "speak");
    this.#showRole(true);
    this.#client.speak(this.#composer.usual);
    this.#composer.focus();
  }

  /** @param {Entry} entry */
  #correct(entry) {
    if (!this.#speaking.isSpeaking) this.#startSpeaking();
    this.#composer.correct(entry);
  }

  /** @param {Entry} entry */
  async #takeBack({ participant, utterance, text }) {
    const title = t("transcript.take_back_title");
    const texts = [text, t("transcript.take_back_text")];
    if (!(await confirmed({ title, texts, action: t("transcript.take_back") }))) return;
    this.#client.final({ text: "", replaces: segmentOf(utterance), participant });
  }

  #retry() {
    this.#client.connect();
    void this.#readinessPoller.check();
    // The button disappears with the banner, and must not take the focus with it.
    if (this.#speaking.isSpeaking) return this.#composer.focus();
    this.#focusTranscript();
  }

  #focusTranscript() {
    const transcript = this.#view.element.querySelector("[tabindex]");
    if (transcript instanceof HTMLElement) transcript.focus();
  }

  // ---------------------------------------------------------------- events of the client

  /** @param {ClientEvent} event */
  #onEvent(event) {
    this.#engineMonitor.onEvent(event, this.#client.reads);
    if (event.type === "session.started" || event.type === "languages.changed") this.#onLanguages(event);
    if (event.type === "session.started" || event.type === "session.muted")
      this.#element.classList.toggle("muted", event.muted === true);
    if (event.type === "session.started")
      this.#transcript.addOwn(rememberParticipant(this.#client.meeting, event.participant));
    switch (event.type) {
      case "state":
        this.#onState(event);
        break;
      case "session.updated":
        this.#saveLanguages();
        break;
      case "pong":
        this.#spoken.start();
        this.#announcer.start(); // everything before the first one is history
        break;
      case "translation.failed":
        if (event.code === "engine_unavailable") void this.#readinessPoller.check();
        break;
      case "error":
        this.#onError(event);
        break;
      case "session.started":
      case "participant.joined":
      case "participant.updated":
      case "participant.left":
        this.#sidePanel.rename("people", t("tab.people_count", { count: this.#people.count }));
        break;
    }
  }

  /** @param {StateChanged} change */
  #onState(change) {
    const { state } = change;
    this.#composer.enabled = state !== "closed";
    // Who is not let in has no meeting to lead others to, nor one to speak in.
    if (this.#share !== null) this.#share.hidden = state === "closed";
    this.#speaking.isOffered = state !== "closed";
    if (state === "reconnecting" || state === "loading") void this.#readinessPoller.check();
    if (state === "closed") this.#onClosed(change);
    if (state !== "open") return;
    this.#startedMs ??= Date.now();
    if (!this.#lastScreen.element.hidden) this.#goOn();
    withdrawAlert(UNTIL_RECONNECTED);
    this.#composer.limits = this.#client.limits;
    this.#saveLanguages();
  }

  // ---------------------------------------------------------------- the end

  /** @param {StateChanged} change */
  #onClosed({ reason, code, field }) {
    if (code === "meeting_ended") return this.#showLast("ended");
    if (code === "removed") {
      saveRemoval(this.#client.meeting, true);
      return this.#showLast("removed");
    }
    if (this.#isLeaving) return this.#showLast("left");
    this.#lastScreen.allowJoin();
    if (!reason || this.#mendStart({ code, field })) return;
    showAlert(refusalOf({ code, reason }, this.#access.token !== null) ?? reason, UNTIL_RECONNECTED);
  }

  #leave() {
    this.#isLeaving = true;
    if (this.#client.state === "closed") return this.#showLast("left");
    this.#demo.stopNow();
    this.#client.close();
  }

  /** @param {"left" | "ended" | "removed"} how */
  #showLast(how) {
    this.#isLeaving = false;
    this.#demo.stopNow();
    this.#spoken.stop();
    hideAlert();
    const { element: download } = this.#download;
    // Tokens of a meeting that was ended open nothing any more, its transcript included.
    const isShut = how !== "left" && this.#access.token !== null && !download.hidden;
    const keep = isShut
      ? saveShownButton({
          transcript: this.#transcript,
          reads: () => this.#reading.reads,
          name: () => this.#title.text || this.#client.meeting,
        })
      : download;
    const stayedMs = this.#startedMs === null ? null : Date.now() - this.#startedMs;
    this.#banner.over = how;
    this.#skipLinks.hidden = true;
    this.#element.classList.add("over");
    actions.hidden = true;
    this.#lastScreen.show(how, { goesOn: this.#demo.stranger !== undefined, stayedMs, keep });
    this.#startedMs = null;
  }

  /** Also one who was removed, after the page was loaded again: the host may have agreed. */
  #joinAgain() {
    saveRemoval(this.#client.meeting, false);
    if (this.#hasJoined) return this.#client.connect();
    this.#goOn();
    this.#element.hidden = this.#skipLinks.hidden = true;
    void this.join();
  }

  /** There is a session again. */
  #goOn() {
    this.#banner.over = null;
    this.#skipLinks.hidden = false;
    this.#element.classList.remove("over");
    this.#lastScreen.element.hidden = true;
    actions.hidden = false;
    find("pane-people", HTMLElement).append(this.#download.element);
  }

  #saveLanguages() {
    if (this.#demo.sample.isReadingChosen) this.#readingSettings.saveLanguages();
  }

  /** @param {{code: string, field: string}} refusal */
  #mendStart(refusal) {
    return mendStart(refusal, {
      client: this.#client,
      nameChars: this.#gateway.limits.name_chars,
      onRead: (reads) => this.#setReading({ reads: [...reads] }),
      onProblem: showAlert,
    });
  }

  /** @param {GatewayError} error */
  #onError({ code, field, message }) {
    if (code === "draining") return; // the banner says it since `session.draining`
    if (field?.startsWith("reads")) {
      this.#readingSettings.set({ reads: [...this.#client.reads] });
      this.#applyReading(this.#readingSettings.value);
    }
    showAlert(message, code === "engine_restarting" ? UNTIL_RECONNECTED : "");
  }
}
