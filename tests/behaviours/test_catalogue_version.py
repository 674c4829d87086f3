"""Counts that were calibrated hold as long as the behaviours hold at the same steps, and no longer."""

import hashlib
from itertools import islice

from behaving import found_in

from prefixguard.behaviours import CATALOGUE_SHA256
from prefixguard.simulation import generate
from prefixguard.stepview import load_adapter

#: The catalogue, and what it finds in 60 simulated runs.
PINNED = ("f0b01bc0fd7a2bf9", "446b53b34de057c5")


def test_behaviours_that_hold_at_other_steps_are_another_version() -> None:
    adapter, told = load_adapter("openai_chat"), hashlib.sha256()
    for run in islice(generate(60, 5), 60):
        parser = adapter.parser()
        records = [record for message in run["messages"] for record in parser.observe(message)] + parser.end()
        for findings in found_in(records):
            told.update(repr([(one.behaviour.name, one.since, one.count) for one in findings]).encode())
    found = (CATALOGUE_SHA256[:16], told.hexdigest()[:16])
    assert found == PINNED, "behaviours hold at other steps: add one to CATALOGUE_VERSION, and pin what is found anew"
