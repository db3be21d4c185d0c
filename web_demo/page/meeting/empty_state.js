// Shown instead of the transcript until something is said: what one can do here. Must not know how it is done.

import { button, element } from "../ui/dom.js";

export class EmptyState {
  /** @param {{onPlaySample: () => void, onInvite: () => void, onSpeak: () => void}} actions */
  constructor({ onPlaySample, onInvite, onSpeak }) {
    this.element = element("div", "empty-state");
    const others = element("div", "others");
    others.append(
      button("secondary", "Say something", "empty-speak", onSpeak),
      button("secondary", "Invite people", "empty-invite", onInvite),
    );
    this.element.append(
      element("h2", "", "Everyone speaks their language. Everyone reads their own."),
      element("p", "", "Words are translated while they are being said, into every language that somebody reads."),
      button("primary", "Play a sample meeting", "empty-play", onPlaySample),
      others,
    );
  }
}
