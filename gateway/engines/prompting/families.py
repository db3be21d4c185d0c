"""Prompt families: one table of the open translation models and the prompt that each expects.

Knows: each family's languages, options, sampling and markers, and how the family is chosen from a model's
`config.json`. The wording is in `prompting.templates`, the safety of inserted text in `prompting.safety`.
Must not know: tokenizers, engines, settings. An adapter passes in the special tokens of its tokenizer.

Two rules hold for every family:
- Speech is data. Every prompt is made by `PromptFamily.render`. It breaks special tokens and the prompt's own
  delimiters in text from users, and puts each glossary term and context entry on one line.
- Decoding is greedy. The sampling of the model card is kept as `card_sampling`, for operators to turn on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec
from msgspec import Struct

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import InvalidValue, UnsupportedLanguage
from gateway.domain.languages import NAMES, language_name, normalise_all
from gateway.engines.prompting import templates
from gateway.engines.prompting.completions import Sampling
from gateway.engines.prompting.safety import COMMON_TOKENS, Normalise, flatten, neutralise_request
from gateway.engines.prompting.templates import Prompt
from gateway.text.folding import Fold

# ---------------------------------------------------------------------------------------------- a family


class PromptFamily(Struct, frozen=True, kw_only=True):
    """Models that expect the same kind of prompt."""

    name: str
    # Normalised tags of the languages that the model card names and `domain.languages` knows.
    languages: tuple[str, ...]
    # Which of `glossary`, `context` and `formality` the prompt takes.
    options: frozenset[str] = frozenset()
    # Makes the prompt of a request whose texts are safe to insert; `render` makes them safe.
    template: Callable[[TranslationRequest], Prompt]
    # Strings with a meaning in this family's prompts. No inserted text may contain them.
    markers: frozenset[str] = COMMON_TOKENS
    # Whether the prompt is read line by line, so that the text must not contain line breaks.
    one_line: bool = False
    # What its models do not know of how texts are typed and recognised.
    folds: frozenset[Fold] = frozenset()
    sampling: Sampling = Sampling()
    # The sampling that the model card recommends. None if it is greedy.
    card_sampling: Sampling | None = None
    # Tokens that end the output, besides the model's own end token. The adapter passes their ids to the engine,
    # because special tokens do not appear in the output text.
    stop: tuple[str, ...] = ()
    # Arguments of the chat template. A template that does not know them ignores them.
    template_kwargs: tuple[tuple[str, bool], ...] = ()

    def render(
        self,
        request: TranslationRequest,
        special_tokens: frozenset[str] = frozenset(),
        normalise: Normalise | None = None,
    ) -> Prompt:
        """The prompt of one request. Options that the family does not take are left out.

        special_tokens: those of the model's tokenizer, if it is available; common ones are always broken.
        normalise: what that tokenizer does before it looks for them; None: nothing that is known.
        Raises `UnsupportedLanguage` for a language that the family does not have.
        """
        for tag in (request.source, request.target):
            if tag not in self.languages:
                raise UnsupportedLanguage(f"this model does not translate {language_name(tag)}")
        # Joining lines could complete a token, so it happens before tokens are broken.
        flat = flatten(request, text_too=self.one_line)
        return self.template(neutralise_request(flat, _union(self.markers, special_tokens), normalise))


@lru_cache(maxsize=64)
def _union(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return one | other


# ------------------------------------------------------------------------------------------- the table


def _list(languages: str) -> tuple[str, ...]:
    return tuple(languages.split())


def _tags(languages: Iterable[str]) -> frozenset[str]:
    return frozenset(f"<{tag}>" for tag in languages)


_BUNDLED_MARKERS = COMMON_TOKENS | {"<final>", "<partial>", "<to>"}
_SEED_X_LANGUAGES = _list("ar cs da de en es fi fr hr hu id it ja ko ms nl no pl pt ro ru sv th tr uk vi zh")
_GEMMA_LANGUAGES = tuple(tag for tag in NAMES if tag not in {"km", "ms", "my"})
_TENCENT_CARD = Sampling(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)

FAMILIES: Mapping[str, PromptFamily] = MappingProxyType(
    {
        family.name: family
        for family in (
            PromptFamily(
                name="bundled",
                languages=(),  # named by the model's config.json
                template=templates.bundled,
                markers=_BUNDLED_MARKERS,
                folds=frozenset(Fold),
            ),
            PromptFamily(
                name="hunyuan-mt",
                languages=tuple(templates.CHINESE_NAMES),
                template=templates.hunyuan_mt,
                card_sampling=_TENCENT_CARD,
            ),
            PromptFamily(
                name="hy-mt1.5",
                languages=tuple(templates.CHINESE_NAMES),
                options=frozenset({"glossary", "context"}),
                template=templates.hy_mt15,
                card_sampling=_TENCENT_CARD,
            ),
            PromptFamily(
                name="hy-mt2",
                languages=tuple(templates.CHINESE_NAMES),
                options=frozenset({"glossary", "context", "formality"}),
                template=templates.hy_mt2,
                markers=COMMON_TOKENS
                | {"[Source Text]", "[Background Information]", "【待翻译文本】", "【背景信息】"},
                card_sampling=_TENCENT_CARD,
            ),
            PromptFamily(
                name="seed-x",
                languages=_SEED_X_LANGUAGES,
                template=templates.seed_x,
                markers=COMMON_TOKENS | _tags(_SEED_X_LANGUAGES),
                one_line=True,
            ),
            PromptFamily(
                name="translategemma",
                languages=_GEMMA_LANGUAGES,
                template=templates.translategemma,
                stop=("<end_of_turn>",),
            ),
            PromptFamily(
                name="translategemma-vllm",
                languages=_GEMMA_LANGUAGES,
                template=templates.translategemma_vllm,
                markers=COMMON_TOKENS | {"<<<"},
                stop=("<end_of_turn>",),
            ),
            PromptFamily(
                name="tower",
                languages=_list("en de es fr it ko nl pt ru zh"),
                template=templates.tower,
                one_line=True,
            ),
            PromptFamily(
                name="tower-plus",
                languages=_list("cs da de en es fi fr hi hu it ja ko nl no pl pt ro ru sv uk zh zh-hant"),
                template=templates.tower_plus,
                one_line=True,
            ),
            PromptFamily(
                name="chat",
                languages=tuple(NAMES),
                options=frozenset({"glossary", "context", "formality"}),
                template=templates.chat,
                markers=COMMON_TOKENS | {"<text>", "</text>", "<context>", "</context>"},
                template_kwargs=(("enable_thinking", False),),
            ),
        )
    }
)


# ------------------------------------------------------------------------------------------ choosing one

# Searched in order: first in the model's name, then in the `_name_or_path` of its config.json.
_BY_NAME: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"vllm-translate-?gemma"), "translategemma-vllm"),
    (re.compile(r"translate-?gemma"), "translategemma"),
    (re.compile(r"hy-?mt-?2"), "hy-mt2"),
    (re.compile(r"(hy|hunyuan)-?mt-?1\.?5"), "hy-mt1.5"),
    (re.compile(r"(hy|hunyuan)-?mt\b"), "hunyuan-mt"),
    (re.compile(r"\bseed-x\b"), "seed-x"),
    (re.compile(r"tower-?instruct"), "tower"),
    (re.compile(r"tower-?plus"), "tower-plus"),
)

# Tencent's dense architecture. All its translation models understand the plain prompt of the first one. Tencent's
# general models have the same architecture; their names contain Instruct or Pretrain.
_HUNYUAN_TYPES = frozenset({"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"})
_GENERAL = re.compile(r"instruct|pretrain")


def detect(model_config: Mapping[str, object], model_name: str, override: str | None = None) -> PromptFamily:
    """The family of a model; `chat` by default.

    model_config: the contents of the model's `config.json`; empty if it is not available.
    model_name: repository id or path.
    override: the family that the operator chose; it comes before everything else.

    Tried in this order: `override`; the marker `translation_gateway` {`prompt`, `languages`} in the config; the
    model's name; `_name_or_path`; `model_type` and `architectures`. The languages of the marker always replace
    those of the family.
    Raises `InvalidValue` for an unknown family or an invalid marker.
    """
    marker = _marker(model_config)
    prompt = marker.get("prompt")
    names = [_name(model_name), _name(model_config.get("_name_or_path"))]
    if override is not None:
        family = family_named(override)
    elif prompt is not None:
        family = _named_by_marker(prompt)
    else:
        family = _by_name(names) or _by_architecture(model_config, names) or FAMILIES["chat"]
    if "languages" in marker:
        family = _with_languages(family, marker["languages"])
    if not family.languages:
        raise InvalidValue(
            f"prompt family {family.name!r} needs translation_gateway.languages in the model's config.json",
            field="translation_gateway.languages",
        )
    return family


def _marker(model_config: Mapping[str, object]) -> Mapping[str, object]:
    marker = model_config.get("translation_gateway", {})
    if not isinstance(marker, Mapping):
        raise InvalidValue(
            "translation_gateway in the model's config.json must be an object", field="translation_gateway"
        )
    return marker


def _named_by_marker(prompt: object) -> PromptFamily:
    if isinstance(prompt, str) and prompt in FAMILIES:
        return FAMILIES[prompt]
    raise InvalidValue(
        f"unknown prompt family {prompt!r} in the model's config.json; known: {', '.join(FAMILIES)}",
        field="translation_gateway.prompt",
    )


def _with_languages(family: PromptFamily, languages: object) -> PromptFamily:
    if not isinstance(languages, list | tuple) or not all(isinstance(tag, str) for tag in languages):
        raise InvalidValue(
            "translation_gateway.languages in the model's config.json must be a list of language tags",
            field="translation_gateway.languages",
        )
    tags = normalise_all(languages)
    markers = family.markers | _tags(tags) if family.name == "bundled" else family.markers
    return msgspec.structs.replace(family, languages=tags, markers=markers)


def _name(value: object) -> str:
    return re.sub(r"[_\s]+", "-", value.lower()) if isinstance(value, str) else ""


def _by_name(names: Iterable[str]) -> PromptFamily | None:
    return next((FAMILIES[family] for name in names for pattern, family in _BY_NAME if pattern.search(name)), None)


def _by_architecture(model_config: Mapping[str, object], names: Iterable[str]) -> PromptFamily | None:
    architectures = model_config.get("architectures")
    declared = [model_config.get("model_type"), *(architectures if isinstance(architectures, list) else ())]
    translates = not _HUNYUAN_TYPES.isdisjoint(item for item in declared if isinstance(item, str))
    return FAMILIES["hunyuan-mt"] if translates and not any(map(_GENERAL.search, names)) else None


def family_named(name: str) -> PromptFamily:
    """The family of that name. Raises `InvalidValue`, which lists the known names."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise InvalidValue(
            f"unknown prompt family {name!r}; known: {', '.join(FAMILIES)}", field="engine.family"
        ) from None


def family_of(name: str, languages: Iterable[str]) -> PromptFamily:
    """The family of that name with these languages: what `detect` has found, told by another process."""
    return _with_languages(family_named(name), list(languages))
