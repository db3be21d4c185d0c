#!/bin/sh
# A label of a Praat TextGrid may have line breaks, as captions have. tgt 1.5 writes them, and cannot read them: an
# IndexError for the whole file, its own, too. textgrid 1.6.1, praatio 6.2.2 and pympi-ling 1.71 read it.
# Guess before: all read what each of them writes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tgt==1.5 textgrid==1.6.1 praatio==6.2.2 pympi-ling==1.71 numpy==2.4.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import tempfile
from pathlib import Path

import praatio.textgrid
import pympi.Praat
import textgrid
import tgt

with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder, "meeting.TextGrid"))
    tier = tgt.IntervalTier(0, 2, "Ana")
    tier.add_interval(tgt.Interval(0, 1, "Good\nmorning."))
    grid = tgt.TextGrid()
    grid.add_tier(tier)
    tgt.write_to_file(grid, path, format="long")
    print("textgrid", textgrid.TextGrid.fromFile(path)[0][0].mark.split("\n"))
    print("praatio", praatio.textgrid.openTextgrid(path, False).getTier("Ana").entries[0].label.split("\n"))
    print("pympi", list(pympi.Praat.TextGrid(path).get_tier(1).get_all_intervals())[0][2].split("\n"))
    try:
        print("tgt", tgt.read_textgrid(path).tiers[0][0].text.split("\n"))
    except IndexError as error:
        print("tgt", error)
PYTHON
)
expected=$(cat <<'SEEN'
textgrid ['Good', 'morning.']
praatio ['Good', 'morning.']
pympi ['Good', 'morning.']
tgt list index out of range
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
