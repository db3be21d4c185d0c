#!/bin/sh
# Installs the system packages that the browser tests need: Chromium, and fonts for Chinese, Japanese and Korean.
# Works on Debian and Ubuntu. Installs only what is missing, and says so first.
set -eu

has_chromium() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null 2>&1

has_cjk_font() { # Without one, every character is the same empty box, and a wrong caption looks like a correct one.
    command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=ja family)" ] && [ -n "$(fc-list :lang=zh-cn family)" ]
}

packages=
has_chromium || packages="chromium"
# WenQuanYi Zen Hei: one font of 16 MB for all three scripts; the usual fonts are four times as large.
has_cjk_font || packages="${packages:+$packages }fontconfig fonts-wqy-zenhei"
[ -n "$packages" ] || exit 0

echo "The browser tests need system packages that are missing here: $packages"
echo "(Chromium opens the demo page; the fonts are for Chinese and Japanese captions; about 130 MB)."

sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo "
by_hand() {
    echo "system_packages: $1" >&2
    echo "Run this yourself, then the same command again:" >&2
    echo "    ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends $packages" >&2
    echo "On other systems, install Chromium and a font for Chinese and Japanese with the system's tools." >&2
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
has_chromium || by_hand "apt-get has finished, but there is no chromium on the PATH."
has_cjk_font || by_hand "apt-get has finished, but no font for Chinese and Japanese is found."
echo "Installed."
