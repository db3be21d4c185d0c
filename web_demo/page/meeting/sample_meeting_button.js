// The button that plays the sample meeting. While it plays, more languages are read than the user chose. Must not know
// what is said in it.

import { SampleMeetingPlayer } from "../samples/sample_meeting_player.js";
import { button } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @typedef {import("../settings/reading_settings.js").Reading} Reading */

const WIDE = matchMedia("(min-width: 40rem)");
const NARROW_LANGUAGES = 2;

export class SampleMeetingButton {
  element = button("quiet", t("sample.start"), "sample", () => this.toggle());
  #options;
  #player;
  /** What was read before it began to play. @type {Reading | null} */
  #readingBefore = null;

  /**
   * @param {object} options
   * @param {string} options.streamUrl
   * @param {() => string} options.meeting The id of the meeting.
   * @param {() => readonly string[]} options.tags The gateway's languages.
   * @param {() => number} options.maxLanguages How many of them can be read at a time.
   * @param {() => Reading} options.reading What is read now.
   * @param {(changes: Partial<Reading>) => void} options.onRead
   * @param {() => void} options.onClick
   * @param {(isPlaying: boolean) => void} options.onPlaying It begins or ends.
   * @param {() => void} options.onComplete All of its speakers are there, and about to talk.
   * @param {(problem: string) => void} options.onProblem
   */
  constructor(options) {
    this.#options = options;
    const { streamUrl, meeting, onComplete, onProblem } = options;
    this.#player = new SampleMeetingPlayer({
      streamUrl,
      meeting,
      onChange: (isPlaying) => this.#onChange(isPlaying),
      onComplete,
      onProblem,
    });
  }

  /** Whether the languages that are read are the user's choice, and not those of the sample meeting. */
  get isReadingChosen() {
    return this.#readingBefore === null;
  }

  get isPlaying() {
    return this.#player.isPlaying;
  }

  /** Whether a participant may be a person, and not one of its speakers. @param {string} participant */
  isStranger(participant) {
    return this.#player.isComplete && !this.#player.has(participant);
  }

  toggle() {
    this.#options.onClick();
    if (this.#player.isPlaying) this.#player.stop();
    else this.#player.start(this.#options.tags());
  }

  /** The page is left. */
  stopNow() {
    this.#player.stop(true);
  }

  /** The user chose languages while it plays: they stay when it ends. */
  keepReading() {
    this.#readingBefore = null;
  }

  /** @param {boolean} isPlaying */
  #onChange(isPlaying) {
    const { maxLanguages, onPlaying, onRead, reading, tags } = this.#options;
    this.element.textContent = t(isPlaying ? "sample.stop" : "sample.start");
    onPlaying(isPlaying);
    if (isPlaying && this.#readingBefore === null) {
      this.#readingBefore = reading();
      const max = WIDE.matches ? maxLanguages() : NARROW_LANGUAGES;
      const reads = [...new Set([...this.#readingBefore.reads, ...tags()])].slice(0, max);
      // A column for each shows that it is translated. One language at a time does so with what was said above it.
      onRead({ reads, originals: !WIDE.matches });
    } else if (!isPlaying && this.#readingBefore !== null) {
      onRead(this.#readingBefore);
      this.#readingBefore = null;
    }
  }
}
