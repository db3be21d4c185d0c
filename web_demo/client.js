// The public address of the JavaScript client, which other pages import (docs/browser.md). The code is in client/.

export { GatewayClient } from "./client/gateway_client.js";
