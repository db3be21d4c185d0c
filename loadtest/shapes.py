"""Models of a given size without weights: for speed alone, where no real one can be downloaded.

Knows: the shapes of two open models, and what a folder needs for vLLM's `load_format = "dummy"`.
Must not know: engines.

    python -m loadtest.shapes FOLDER           # makes FOLDER/1.7b and FOLDER/8b

Such a model says nonsense at the speed of a real one: the same arithmetic, and text of some length for each token.
How long an answer is comes from the output limit alone (`engine.output_tokens_base`,
`engine.output_tokens_per_source_token`), since none ends by itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from demo_model import SMALL_MODEL

_VOCABULARY = 151_936

# From the config.json of Qwen/Qwen3-1.7B and Qwen/Qwen3-8B.
SHAPES: dict[str, dict[str, object]] = {
    "1.7b": {
        "hidden_size": 2_048,
        "intermediate_size": 6_144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "tie_word_embeddings": True,
    },
    "8b": {
        "hidden_size": 4_096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "tie_word_embeddings": False,
    },
}
COMMON: dict[str, object] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": _VOCABULARY,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-06,
    "rope_theta": 1_000_000,
    "max_position_embeddings": 4_096,
    "attention_bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "torch_dtype": "bfloat16",
}


def write(folder: Path, shape: str) -> Path:
    """Make `folder`/`shape`: a config, and the bundled tokenizer with words added up to the model's vocabulary."""
    target = folder / shape
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(COMMON | SHAPES[shape], indent=1))
    tokenizer = json.loads((SMALL_MODEL / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    # Never the result of encoding, because no merge leads to them; an answer consists of them.
    vocabulary |= {f" w{number}": number for number in range(len(vocabulary), _VOCABULARY)}
    (target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    settings = json.loads((SMALL_MODEL / "tokenizer_config.json").read_text())
    (target / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 4_096}))
    return target


if __name__ == "__main__":
    for name in SHAPES:
        print(write(Path(sys.argv[1]), name))
