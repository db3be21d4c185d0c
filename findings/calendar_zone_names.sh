#!/bin/sh
# A calendar file names its time zone as it likes, and brings the rules of it along (VTIMEZONE). For a meeting at 9:00,
# an hour ahead of UTC, ics 0.7.3 says 9:00 UTC if the zone has Windows' name or one that somebody gave, and node-ical
# 0.26.1 (npm) if somebody gave it (it warns): who relies on them joins an hour late. icalendar 7.3.2 and ical.js 2.2.1
# (npm) are right for all three.
# Guess before, written down for Windows' name: 8:00 UTC from all, as the rules are in the file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ics==0.7.3 icalendar==7.3.2
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" node-ical@0.26.1 ical.js@2.2.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { writeFileSync } from "node:fs";
import ICAL from "ical.js";
import nodeIcal from "node-ical";
console.warn = () => {};
for (const zone of ["Europe/Berlin", "W. Europe Standard Time", "Meeting Zone"]) {
  const text = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//x//x//EN
BEGIN:VTIMEZONE
TZID:${zone}
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0100
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1@example.com
DTSTAMP:20260101T000000Z
DTSTART;TZID=${zone}:20260316T090000
SUMMARY:Weekly
END:VEVENT
END:VCALENDAR
`.replaceAll("\n", "\r\n");
  writeFileSync(`${zone[0]}.ics`, text);
  const calendar = new ICAL.Component(ICAL.parse(text));
  calendar.getAllSubcomponents("vtimezone").forEach((rules) => ICAL.TimezoneService.register(rules));
  const start = new ICAL.Event(calendar.getFirstSubcomponent("vevent")).startDate.toJSDate();
  const event = Object.values(nodeIcal.sync.parseICS(text)).find(({ type }) => type === "VEVENT");
  console.log(zone, "ical.js", start.toISOString(), "node-ical", event.start.toISOString());
}
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
from datetime import timezone
from pathlib import Path

import icalendar
import ics

for name in "EWM":
    text = Path(f"{name}.ics").read_bytes().decode()
    event = next(iter(ics.Calendar(text).events))
    right = icalendar.Calendar.from_ical(text).events[0]["DTSTART"].dt.astimezone(timezone.utc)
    print(name, "icalendar", right.isoformat(), "ics", event.begin.to("utc").isoformat())
PYTHON
)
expected=$(cat <<'SEEN'
Europe/Berlin ical.js 2026-03-16T08:00:00.000Z node-ical 2026-03-16T08:00:00.000Z
W. Europe Standard Time ical.js 2026-03-16T08:00:00.000Z node-ical 2026-03-16T08:00:00.000Z
Meeting Zone ical.js 2026-03-16T08:00:00.000Z node-ical 2026-03-16T09:00:00.000Z
E icalendar 2026-03-16T08:00:00+00:00 ics 2026-03-16T08:00:00+00:00
W icalendar 2026-03-16T08:00:00+00:00 ics 2026-03-16T09:00:00+00:00
M icalendar 2026-03-16T08:00:00+00:00 ics 2026-03-16T09:00:00+00:00
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
