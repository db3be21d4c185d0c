#!/bin/sh
# transformers 5.24.0 takes the line break after "assistant" away when `continue_final_message` continues an empty
# message and the template trims messages, as those of many models do. The prompt is not the one that
# `add_generation_prompt` gives, and not the beginning of the one with the first word: the model sees an unfinished
# header.
# Guess before: an empty message is the same as a generation prompt.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE({"a": 0}, [])))
tokenizer.chat_template = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
user = [{"role": "user", "content": "Hello"}]
print("generation", repr(tokenizer.apply_chat_template(user, tokenize=False, add_generation_prompt=True)))
for text in ("Guten", ""):
    chat = [*user, {"role": "assistant", "content": text}]
    print(repr(text), repr(tokenizer.apply_chat_template(chat, tokenize=False, continue_final_message=True)))
PYTHON
)
expected=$(cat <<'SEEN'
generation '<|user|>\nHello<|end|>\n<|assistant|>\n'
'Guten' '<|user|>\nHello<|end|>\n<|assistant|>\nGuten'
'' '<|user|>\nHello<|end|>\n<|assistant|>'
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
