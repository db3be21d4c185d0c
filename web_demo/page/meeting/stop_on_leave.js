// What happens when the page is left: demos stop, and the session ends. Must not know the rest of the meeting page.

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
