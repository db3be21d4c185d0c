// Who may run a demo in the meeting, and when: the host, while no other participant is there. When a participant joins,
// the demo stops, and the host is asked whether it resumes. Must not know what a demo shows.

import { hideAlert, showAlert } from "../status/alert.js";
import { t } from "../words/words.js";
import { SampleMeetingButton } from "./sample_meeting_button.js";

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {GatewayClient} from "../../client/gateway_client.js" */
/** @import {SimulatedSpeakers} from "../samples/simulated_speakers.js" */

/** Whether this gateway offers demos at all. */
export const HAS_DEMO_CONTROLS = document.querySelector('meta[name="demo-controls"][content="on"]') !== null;

export class DemoControls {
  /** The button of the sample meeting. */
  sample;
  #client;
  #isHost;
  #speakers;
  /** Other elements that are shown while a demo may be started. @type {HTMLElement[]} */
  #controls = [];
  /** Whether the host lets the demo continue although others are there. */
  #goesOn = false;

  /**
   * @param {object} options
   * @param {GatewayClient} options.client In the meeting.
   * @param {boolean} options.isHost Whether this page has opened the meeting.
   * @param {SimulatedSpeakers} options.speakers
   * @param {() => void} options.onStart The sample meeting begins.
   * @param {Omit<ConstructorParameters<typeof SampleMeetingButton>[0],
   *   "meeting" | "onClick" | "onPlaying" | "onComplete" | "onProblem">} options.sample
   */
  constructor({ client, isHost, speakers, onStart, sample }) {
    this.#client = client;
    this.#isHost = isHost && HAS_DEMO_CONTROLS;
    this.#speakers = speakers;
    this.sample = new SampleMeetingButton({
      ...sample,
      meeting: () => client.meeting,
      onClick: hideAlert,
      onPlaying: (isPlaying) => {
        if (isPlaying) onStart();
        else this.#goesOn = false;
        if (isPlaying && client.state !== "open") showAlert(t("sample.waits"));
        this.#show();
      },
      onComplete: () => this.#check(),
      onProblem: showAlert,
    });
    this.#show();
    client.listen((event) => this.#onEvent(event));
  }

  /** Whether a demo may be started now, or has the host's permission to continue. */
  get areAllowed() {
    if (!this.#isHost || this.#client.participant === "") return false;
    return this.stranger === undefined || (this.#goesOn && this.#isRunning);
  }

  /** Show an element only while a demo may be started. @param {HTMLElement} control */
  add(control) {
    this.#controls.push(control);
    this.#show();
  }

  /** The meeting is over, or the page is left. */
  stopNow() {
    this.sample.stopNow();
    this.#speakers.stop(true);
  }

  get #isRunning() {
    return this.sample.isPlaying || this.#speakers.count > 0;
  }

  /** Another participant. There is none while the sample meeting's speakers are still joining. */
  get stranger() {
    return [...this.#client.participants.values()].find(({ participant }) => this.sample.isStranger(participant));
  }

  /** @param {ClientEvent} event */
  #onEvent(event) {
    switch (event.type) {
      case "participant.joined":
        // The host is asked about each participant who joins.
        if (this.sample.isStranger(event.participant)) this.#goesOn = false;
        return this.#check(event.name);
      case "session.started":
      case "participant.left":
        return this.#check();
    }
  }

  /** Stop the demo if another participant is there. @param {string} [joined] The name of the participant who has just joined. */
  #check(joined) {
    this.#goesOn &&= this.#isRunning;
    const stranger = this.stranger;
    if (stranger !== undefined && this.#isRunning && !this.#goesOn)
      this.#ask((joined ?? stranger.name).trim() || t("demo.somebody"));
    this.#show();
  }

  /** @param {string} name Name of the participant who joined. */
  #ask(name) {
    const wasPlaying = this.sample.isPlaying;
    const speakers = this.#speakers.count;
    if (wasPlaying) this.sample.toggle();
    this.#speakers.stop();
    const sentence = t(wasPlaying ? "demo.sample_stopped" : "demo.stopped", { name });
    const goOn = () => {
      this.#goesOn = true;
      if (wasPlaying) this.sample.toggle();
      this.#speakers.add(speakers);
      this.#show();
    };
    showAlert(sentence, "", { text: t("demo.go_on"), onClick: goOn });
  }

  #show() {
    const { areAllowed } = this;
    this.sample.element.hidden = !areAllowed && !this.sample.isPlaying;
    for (const control of this.#controls) control.hidden = !areAllowed;
  }
}
