#!/bin/sh
# Fetches what tests of deploy/ and `make stack` run: nginx, Prometheus and promtool, as Debian packages, unpacked into
# .venv/tools. They are not installed: as packages they would start services. Those on the PATH are used where there are
# any. `deployment_tools.sh stack` does without what only tests need.
set -eu

tools=.venv/tools
PATH="$PATH:$tools/usr/bin:$tools/usr/sbin:/usr/sbin"
packages=
command -v nginx >/dev/null 2>&1 || packages="nginx"
{ command -v prometheus && command -v promtool; } >/dev/null 2>&1 || packages="${packages:+$packages }prometheus"

by_hand() {
    echo "deployment_tools: $1" >&2
    echo "Install with the system's tools what is missing, then run the same command again: $packages" >&2
    exit 1
}

[ "${1:-}" = stack ] || command -v systemd-analyze >/dev/null 2>&1 || by_hand "there is no systemd-analyze here; it is in the package systemd."
[ -n "$packages" ] || exit 0

echo "What is in deploy/ needs programs that are missing here: $packages (20 MB, unpacked into $tools) …"
command -v apt-get >/dev/null 2>&1 || by_hand "there is no apt-get here."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo "
# shellcheck disable=SC2086 # $packages and $sudo are lists of words
fetch() { (cd "$folder" && apt-get -q download $packages) >"$folder/log" 2>&1; }
# The lists of packages may be missing or old.
# shellcheck disable=SC2086
fetch || { ${sudo}apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null 2>&1 && fetch; } || {
    tail -n 5 "$folder/log" >&2
    by_hand "apt-get failed (above)."
}
mkdir -p "$tools"
for package in "$folder"/*.deb; do
    dpkg -x "$package" "$tools"
done
for program in nginx prometheus promtool; do
    command -v "$program" >/dev/null 2>&1 || by_hand "apt-get has finished, but there is no $program."
done
