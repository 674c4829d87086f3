"""`prefixguard induce-adapter`: an adapter for a format nobody has seen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prefixguard.cli.command import command
from prefixguard.cli.console import people, say, say_proxy, write_data, write_json
from prefixguard.cli.induction_talk import (
    agrees,
    ask_choice,
    is_conversation,
    offer_shipped,
    say_shipped,
    say_verdict,
    show_preview,
    show_report,
)
from prefixguard.errors import TraceError
from prefixguard.stepview import Adapter, Recognised

if TYPE_CHECKING:
    from prefixguard.induce import Report

CHECKS_FAILED, QUESTION_OPEN = 1, 4


@command(
    "induce_adapter",
    words={
        "labels": "Outcomes beside the samples: run_id,outcome[,task_id] as .jsonl or .csv.",
        "mask": "Mask likely secrets (keys, passwords, cards, e-mail) in what the model is shown.",
        "overwrite": "Replace an adapter of that name.",
    },
    json="The report as JSON on standard output.",
)
def induce(
    samples: str,
    labels: Path | None,
    model: str | None,
    base_url: str | None,
    offline: bool,
    mask: bool,
    pack_tokens: int,
    write: bool,
    as_json: bool,
    steps: int = 6,
    yes: bool = False,
    show_pack: bool = False,
    **given: Any,
) -> None:
    """Make an adapter for runs of any format, from a few samples: by inference alone, or with a language model's help.

    Before anything is written you see how the first steps are read, what is left out and why, and what the checks say.
    What you know is a --hint, a fragment of the spec; what the samples do not decide is asked. An adapter that fails a
    check, or of which a question is open, is not written; where --out names a folder, it is kept there as
    NAME.draft.json, to be mended by hand and frozen with check-adapter --freeze. Samples are sent nowhere unless
    --model names an endpoint; likely secrets are masked. Exit codes: 0 the adapter is frozen, or a shipped one was
    taken; 1 a check failed or you said no; 2 bad input; 3 interrupted; 4 a question is open: nobody could be asked, and
    no answer is likely enough (--sure; for the steps its square root).

    Examples:

        prefixguard induce-adapter samples/
        prefixguard induce-adapter samples/ --name my_agent --hint outcome=$.result.ok --yes
        prefixguard induce-adapter samples/ --hint 'outcome={"file":"parent"}' --hint success=solved
        prefixguard induce-adapter samples/ --hint 'events=$.trajectory[*]' --fragment part.json --draft draft.json
        prefixguard induce-adapter samples/ --model gpt-4.1 --rounds 3
        prefixguard induce-adapter samples/ --model qwen --base-url http://localhost:8000/v1
        prefixguard induce-adapter samples/ --show-pack

    steps : steps that are shown as they are read.
    yes : ask nothing: what is unclear is decided by the likeliest answer, if that is likely enough (--sure).
    show_pack : print what a model would be shown of the samples, and end.
    """
    from prefixguard.escalate import Endpoint, Masker, masked_in_words
    from prefixguard.induce import (
        can_train,
        first_steps,
        induce_adapter,
        open_samples,
        question,
        sample_pack,
        take_first,
    )

    if show_pack:
        pack = sample_pack(open_samples(samples), pack_tokens, Masker(mask=mask))
        write_data(pack.text)
        for sentence in pack.cut:
            say(sentence)
        say(f"about {pack.tokens:,} tokens of {len(pack.files)} files.")
        say(masked_in_words(pack.masked))
        return
    asked = is_conversation() and not yes
    seen: list[bool] = []

    def offered(shipped: Sequence[Recognised]) -> bool:
        if asked:
            return offer_shipped(shipped)
        say_shipped(shipped)
        return False

    def approved(adapter: Adapter, report: Report) -> bool:
        seen.append(True)
        show_preview(first_steps(samples, adapter, steps=steps, labels=labels))
        show_report(report)
        return not asked or not write or agrees(f"Freeze adapter {report.name}?")

    if model is not None and not offline:
        say_proxy(Endpoint(model, base_url).proxy)
    console = people()
    told = (lambda what: console.print(f"{what} ...", style="dim")) if console.is_terminal else None
    induced = induce_adapter(
        samples,
        labels=labels,
        model=model,
        base_url=base_url,
        offline=offline,
        mask=mask,
        pack_tokens=pack_tokens,
        write=write,
        ask=ask_choice if asked else take_first,
        offer=offered,
        approve=approved,
        listen=told,
        **given,
    )
    report = induced.report
    if report is None:
        shipped = induced.adapter.name if induced.adapter is not None else ""
        say(f"Next: prefixguard parse {samples} --adapter {shipped}")
        return
    if as_json:
        paths = [str(path) for path in induced.paths.all] if induced.paths is not None else []
        write_json({**report.to_dict(), "paths": paths})
    if not seen:
        if induced.adapter is not None:
            with suppress(TraceError):  # what cannot be read is a finding of the report
                show_preview(first_steps(samples, induced.adapter, steps=steps, labels=labels))
        show_report(report)
    say_verdict(report)
    if report.check.ok and induced.open:
        for choice in induced.open:
            say(f"Left open: {question(choice)}", style="yellow")
        kept = f" The draft is kept: {induced.draft[0]}." if induced.draft else ""
        say(f"Nothing is frozen, since no answer is likely enough. Give one, or a lower --sure.{kept}", error=True)
        raise typer.Exit(QUESTION_OPEN)
    if not induced.ok:
        say(_refused(report, induced.draft, samples), error=True)
        raise typer.Exit(CHECKS_FAILED)
    if induced.paths is None:
        say("Nothing is written.")
        if write:
            raise typer.Exit(CHECKS_FAILED)
        return
    for path in induced.paths.all:
        say(str(path))
    say(f"{report.name} {report.version}  {induced.paths.sha256[:12]}", style="bold green")
    if can_train(report.check):
        beside = f" --labels {labels}" if labels is not None else ""
        say(f"Next: prefixguard train {samples} --adapter {induced.paths.adapter}{beside}")
    else:
        say(f"Next: prefixguard parse {samples} --adapter {induced.paths.adapter}")


def _refused(report: Report, draft: Sequence[Path], samples: str) -> str:
    """Why there is no adapter, where the draft is, and what to do."""
    failed = ", ".join(dict.fromkeys(one.check for one in report.check.findings if one.severity == "error"))
    if draft:
        return (
            f"A check failed ({failed}), so this is not an adapter yet. The draft is kept: {draft[0]}, with its report "
            f"{draft[1]}. Mend it by hand (docs/adapter-spec.md), then: prefixguard check-adapter {draft[0]} "
            f"{samples} --freeze; or give a --hint, a --waive where a finding is harmless, more samples or a --model."
        )
    return (
        f"A check failed ({failed}), so nothing is written. Give a --hint, a --waive where a finding is harmless, more "
        "samples, or a --model; or name a folder with --out, which keeps the draft, and mend it by hand "
        "(docs/adapter-spec.md)."
    )

