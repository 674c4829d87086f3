"""Replies of a model to prompts, several of each, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from transformers import set_seed

from prefixguard.errors import ConfigError
from prefixguard.factory.short_form import in_form
from prefixguard.factory.training.models import LoadedModel, load

Messages = Sequence[Mapping[str, str]]


@torch.inference_mode()
def replies_of(
    loaded: LoadedModel, prompts: Sequence[Messages], *, n: int, temperature: float, reply_tokens: int, seed: int
) -> list[list[str]]:
    """`n` replies to each prompt. temperature: 0 for the most probable one. seed: of what is drawn."""
    tokenizer, model = loaded.tokenizer, loaded.model
    shown = [in_form(loaded.form, prompt) for prompt in prompts]
    inputs = tokenizer.apply_chat_template(
        shown, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    ).to(model.device)
    drawn = {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0}
    set_seed(seed)
    was_training = model.training
    model.eval()
    out = model.generate(  # (B * n, prompt + reply)
        **inputs,
        max_new_tokens=reply_tokens,
        num_return_sequences=n,
        **(drawn if temperature else {"do_sample": False}),
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model.train(was_training)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [texts[i : i + n] for i in range(0, len(texts), n)]


def answering(base: str) -> Callable[[Messages, int, float], tuple[str, bool, int, int]]:
    """A model as `model_server.serve` takes it, in the form that it was trained with. ConfigError as `load`."""
    loaded = load(base, trainable=False)
    room = int(loaded.model.config.max_position_embeddings)

    def answer(messages: Messages, most: int, temperature: float) -> tuple[str, bool, int, int]:
        n_in = loaded.tokens(messages)
        if n_in >= room:
            raise ConfigError(f"{n_in:,} tokens; the model reads fewer than {room:,}.")
        most = min(most, room - n_in)
        ((text,),) = replies_of(loaded, [messages], n=1, temperature=temperature, reply_tokens=most, seed=0)
        n_out = len(loaded.tokenizer(text, add_special_tokens=False)["input_ids"])
        return text, n_out < most, n_in, n_out

    return answer
