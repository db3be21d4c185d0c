#!/bin/sh
# safetensors 0.8.0 writes an array of numpy that is not contiguous (a transposed matrix, a column, every second value,
# the Fortran order of linear-algebra libraries) with its values in the wrong places or with values of its neighbours.
# The shape is right and nothing is said. `numpy.ascontiguousarray` before `save` helps.
# Guess before, not written down: the values are kept, as numpy's own `save` does, or an error.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import numpy
from safetensors.numpy import load, save

weights = numpy.arange(6).reshape(2, 3)
for name, view in (
    ("transposed", weights.T),
    ("column", weights[:, 1]),
    ("stepped", weights[:, ::2]),
    ("Fortran", numpy.asfortranarray(weights)),
    ("contiguous", numpy.ascontiguousarray(weights.T)),
):
    print(name, view.tolist(), load(save({"w": view}))["w"].tolist())
PYTHON
)
expected=$(cat <<'SEEN'
transposed [[0, 3], [1, 4], [2, 5]] [[0, 1], [2, 3], [4, 5]]
column [1, 4] [1, 2]
stepped [[0, 2], [3, 5]] [[0, 1], [2, 3]]
Fortran [[0, 1, 2], [3, 4, 5]] [[0, 3, 1], [4, 2, 5]]
contiguous [[0, 3], [1, 4], [2, 5]] [[0, 3], [1, 4], [2, 5]]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
