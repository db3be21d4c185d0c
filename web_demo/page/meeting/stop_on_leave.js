// What happens when the meeting or the page is left: demos stop, and the session ends. Must not know the rest of the meeting page.

import { button } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */
/** @import {DemoControls} from "./demo_controls.js" */

/**
 * @param {GatewayClient} client
 * @param {DemoControls} demo
 */
export function stopOnLeave(client, demo) {
  window.addEventListener("beforeunload", (event) => {
    if (client.unsent > 0) event.preventDefault(); // the browser asks whether to stay
  });
  window.addEventListener("pagehide", (event) => {
    if (event.persisted) return;
    demo.stopNow();
    client.close();
    client.close(); // the second call does not wait for answers
  });
}

/**
 * A button to leave the meeting. The banner that says so then leads back.
 * @param {GatewayClient} client
 * @param {DemoControls} demo
 */
export function leaveButton(client, demo) {
  return button("secondary", t("meeting.leave"), "leave", () => {
    demo.stopNow();
    client.close();
  });
}
