#!/bin/sh
# Installs the system packages that tests need: Redis; Chromium, and fonts for Chinese, Japanese and Korean.
# `system_packages.sh redis` leaves out what only the browser tests need.
# Works on Debian and Ubuntu. Installs only what is missing, and says so first.
set -eu

has_chromium() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null 2>&1

has_cjk_font() { # Without one, every character is the same empty box, and a wrong caption looks like a correct one.
    command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=ja family)" ] && [ -n "$(fc-list :lang=zh-cn family)" ]
}

has_redis() { command -v redis-server >/dev/null 2>&1; }

browser_too=yes
[ "${1:-}" != redis ] || browser_too=
packages=
installs_redis=
has_redis || { packages="redis-server" && installs_redis=yes; }
if [ "$browser_too" ]; then
    has_chromium || packages="${packages:+$packages }chromium"
    # WenQuanYi Zen Hei: one font of 16 MB for all three scripts; the usual fonts are four times as large.
    has_cjk_font || packages="${packages:+$packages }fontconfig fonts-wqy-zenhei"
fi
[ -n "$packages" ] || exit 0

echo "The tests need system packages that are missing here: $packages"
echo "(Redis is the store that gateways share, 4 MB, and its service stays off, as tests start their own; Chromium"
echo "opens the demo page, and the fonts are for Chinese and Japanese captions: about 130 MB)."

sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo "
by_hand() {
    echo "system_packages: $1" >&2
    echo "Run this yourself, then the same command again:" >&2
    echo "    ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends $packages" >&2
    echo "On other systems, install Redis, Chromium and a font for Chinese and Japanese with the system's tools." >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 || by_hand "there is no apt-get here."
[ -z "$sudo" ] || command -v sudo >/dev/null 2>&1 || by_hand "this needs root, and there is no sudo here."

echo "Installing them with apt-get (about a minute) …"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# $sudo and $packages are lists of words, possibly empty:
# shellcheck disable=SC2086
# Another apt-get, such as the unattended upgrades, is waited for.
apt() { ${sudo}env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
# shellcheck disable=SC2086
if ! { apt update && apt install -y --no-install-recommends $packages; }; then
    tail -n 12 "$log" >&2
    by_hand "apt-get failed (above)."
fi
has_redis || by_hand "apt-get has finished, but there is no redis-server on the PATH."
if [ "$installs_redis" ]; then # Debian starts it, for everybody on this machine
    { ${sudo}systemctl disable --now redis-server || ${sudo}service redis-server stop || true; } >>"$log" 2>&1
fi
if [ "$browser_too" ]; then
    has_chromium || by_hand "apt-get has finished, but there is no chromium on the PATH."
    has_cjk_font || by_hand "apt-get has finished, but no font for Chinese and Japanese is found."
fi
echo "Installed."
