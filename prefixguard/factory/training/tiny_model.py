"""A model of two layers, made from the rows that it is to be trained on: no hub, seconds on a CPU.

Its tokenizer is a byte-level BPE trained on the rows' short forms, with the agents' names and the fixed texts of the
reply's form as tokens of their own, so that a reply has about six. It shows that training works; as an auditor it is
worth nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, set_seed

from prefixguard.auditor import MODES
from prefixguard.factory.short_form import short_form
from prefixguard.factory.training_rows import TrainingRow, verdict_reply

_VOCABULARY = 512
_PAD, _END, _BEGIN = "<|pad|>", "<|end|>", "<|reply|>"
_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}<|reply|>{{ message['content'] }}<|end|>"
    "{% else %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|reply|>{% endif %}"
)


def tiny_tokenizer(rows: Sequence[TrainingRow]) -> PreTrainedTokenizerFast:
    """A tokenizer of the rows' short forms and of replies."""
    found = Tokenizer(models.BPE())
    # Numbers digit by digit: to copy one of ten is learnt sooner than one of sixty.
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    found.decoder = decoders.ByteLevel()
    found.train_from_iterator(
        (short_form(row.prompt) for row in rows),
        trainers.BpeTrainer(
            vocab_size=_VOCABULARY,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    agents = sorted({name for row in rows for name in row.shown.names.names})
    fixed = [*_pieces(), *(mode.code for mode in MODES), *agents]
    found.add_tokens([AddedToken(text, normalized=False) for text in fixed])
    return PreTrainedTokenizerFast(
        tokenizer_object=found,
        pad_token=_PAD,
        eos_token=_END,
        additional_special_tokens=[_BEGIN],
        padding_side="left",
        chat_template=_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _pieces() -> list[str]:
    """The fixed texts of replies."""
    before, _, after = verdict_reply(7, "NAME").partition("7")
    between, _, end = after.partition("NAME")
    present, _, close = '{"label": "entail", "agents": ["NAME"]}'.partition("NAME")
    labels = [f'{{"label": "{label}", "agents": []}}' for label in ("neutral", "contradict")]
    return [before, between, end, verdict_reply(None, None), present, close, *labels]


def make_tiny(rows: Sequence[TrainingRow], folder: Path, seed: int) -> None:
    """Write a new model for these rows. The same rows and seed give the same bytes."""
    tokenizer = tiny_tokenizer(rows)
    set_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
            dtype=torch.float32,
        )
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
