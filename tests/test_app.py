"""What the parts are given of the settings."""

from __future__ import annotations

from gateway.app import engine_options
from gateway.config import EngineSettings, Settings


def test_the_engine_gets_its_section_and_what_it_needs_of_the_top_level() -> None:
    options = engine_options(Settings(delta_interval_s=0.5, engine=EngineSettings(model="m", max_num_seqs=7)))
    assert (options.model, options.max_num_seqs, options.delta_interval_s) == ("m", 7, 0.5)
