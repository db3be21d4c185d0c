// What stands where nothing was said yet: what can be done here. Knows words and buttons; must not know what they do.

import { button, element } from "../ui/dom.js";

export class Welcome {
  /** @param {{play: () => void, invite: () => void, speak: () => void}} does */
  constructor(does) {
    this.element = element("div", "welcome");
    const others = element("div", "others");
    others.append(
      button("secondary", "Say something", "welcome-speak", does.speak),
      button("secondary", "Invite people", "welcome-invite", does.invite),
    );
    this.element.append(
      element("h2", "", "Everyone speaks their language. Everyone reads their own."),
      element("p", "", "Words are translated while they are being said, into every language that somebody reads."),
      button("primary", "Play a sample meeting", "welcome-play", does.play),
      others,
    );
  }
}
