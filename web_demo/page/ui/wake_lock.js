// Keeps the screen awake while the page is visible.

let isWanted = false;

async function request() {
  if (!isWanted || document.visibilityState !== "visible") return;
  try {
    await navigator.wakeLock?.request("screen");
  } catch {
    // The browser allows it neither without TLS nor with a low battery.
  }
}

export function keepScreenAwake() {
  if (isWanted) return;
  isWanted = true;
  // The browser releases the lock whenever the page is hidden.
  document.addEventListener("visibilitychange", () => void request());
  void request();
}
