#!/bin/sh
# The zero width non-joiner stands inside most Persian verbs. What training with sentencepiece 0.2.3 uses by default
# (nmt_nfkc) makes a space of it, so one word becomes two; the normaliser for BERT in tokenizers 0.23.3 deletes it, so
# two halves become one word; NFKC keeps it. The joiner of emoji families is kept, deleted and kept. And BERT's takes
# the voicing marks off Japanese: "ga" becomes "ka".
# Guess before: all three keep it, and letters.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentencepiece==0.2.3 tokenizers==0.23.3
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import io

import sentencepiece
from tokenizers import normalizers

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["a b c"] * 20),
    model_writer=model,
    vocab_size=300,
    byte_fallback=True,
    hard_vocab_limit=False,
    minloglevel=2,
)
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
for text in ("\u0645\u06cc\u200c\u0634\u0648\u062f", "\U0001f469\u200d\U0001f467", "\u304c"):
    print("text", ascii(text))
    print("sentencepiece", ascii(processor.decode(processor.encode(text))))
    print("BERT", ascii(normalizers.BertNormalizer().normalize_str(text)))
    print("NFKC", ascii(normalizers.NFKC().normalize_str(text)))
PYTHON
)
expected=$(cat <<'SEEN'
text '\u0645\u06cc\u200c\u0634\u0648\u062f'
sentencepiece '\u0645\u06cc \u0634\u0648\u062f'
BERT '\u0645\u06cc\u0634\u0648\u062f'
NFKC '\u0645\u06cc\u200c\u0634\u0648\u062f'
text '\U0001f469\u200d\U0001f467'
sentencepiece '\U0001f469\u200d\U0001f467'
BERT '\U0001f469\U0001f467'
NFKC '\U0001f469\u200d\U0001f467'
text '\u304c'
sentencepiece '\u304c'
BERT '\u304b'
NFKC '\u304c'
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
