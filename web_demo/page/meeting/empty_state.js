// Shown instead of the transcript until something is said: what one can do here. Must not know how it is done.

import { button, element } from "../ui/dom.js";

export class EmptyState {
  /** The button of the sample meeting. Whether it is shown changes with who is there. */
  play;

  /**
   * @param {object} actions An action that is null is not offered.
   * @param {() => void} actions.onPlaySample
   * @param {(() => void) | null} actions.onInvite
   * @param {(() => void) | null} actions.onSpeak
   */
  constructor({ onPlaySample, onInvite, onSpeak }) {
    this.element = element("div", "empty-state");
    this.play = button("primary", "Play a sample meeting", "empty-play", onPlaySample);
    const others = element("div", "others");
    if (onSpeak !== null) others.append(button("secondary", "Say something", "empty-speak", onSpeak));
    if (onInvite !== null) others.append(button("secondary", "Invite people", "empty-invite", onInvite));
    this.element.append(
      element("h2", "", "Everyone speaks their language. Everyone reads their own."),
      element("p", "", "Words are translated while they are being said, into every language that somebody reads."),
      this.play,
      others,
    );
  }
}
