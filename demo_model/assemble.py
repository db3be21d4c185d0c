"""Joins the shards of a training run into the folder of the small model.

python -m demo_model.assemble TRAINED_FOLDER [--into demo_model/small_model]
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from demo_model import SMALL_MODEL
from gateway.engines.prompting.confidence import CALIBRATION_FILE

_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json", "training.json")


def assemble(trained: Path, into: Path) -> Path:
    """Returns the path of the joined weight file. Raises FileNotFoundError or ValueError if shards are missing."""
    from safetensors.torch import load_file, save_file

    shards = sorted(trained.glob("model*.safetensors"))
    if not shards:
        raise FileNotFoundError(f"no weights in {trained}")
    expected = int(shards[0].stem.rsplit("-of-", 1)[1]) if "-of-" in shards[0].stem else 1
    if len(shards) != expected:
        raise ValueError(f"{len(shards)} of {expected} shards in {trained}")
    weights = {name: tensor for shard in shards for name, tensor in load_file(str(shard)).items()}
    into.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        shutil.copyfile(trained / name, into / name)
    # That of the model that was there; `demo_model.calibrate` makes another.
    (into / CALIBRATION_FILE).unlink(missing_ok=True)
    save_file(weights, str(into / "model.safetensors"), metadata={"format": "pt"})
    (into / "model.safetensors").chmod(0o644)  # it was written with access for its owner only
    return into / "model.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.assemble", description="Join the shards of a trained model.")
    parser.add_argument("trained", type=Path)
    parser.add_argument("--into", type=Path, default=SMALL_MODEL)
    options = parser.parse_args()
    path = assemble(options.trained, options.into)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
