#!/bin/sh
# gguf 0.19.0 does not write a key whose value is an empty text or an empty list. A program that copies a model's
# metadata loses them, and a reader cannot tell "none" from "not said". It says nothing. A zero and False are written.
# Guess before: the format has both, so they are written.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gguf==0.19.0 numpy==2.4.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pathlib
import tempfile

import gguf

path = pathlib.Path(tempfile.mkdtemp()) / "model.gguf"
writer = gguf.GGUFWriter(path, "llama")
writer.add_string("a.text", "")
writer.add_array("a.list", [])
writer.add_uint32("a.zero", 0)
writer.add_bool("a.false", False)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
print(*[name for name in gguf.GGUFReader(path).fields if name.startswith("a.")])
path.unlink()
path.parent.rmdir()
PYTHON
)
expected=$(cat <<'SEEN'
a.zero a.false
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
