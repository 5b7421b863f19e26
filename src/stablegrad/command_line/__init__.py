"""The parts of the ``stablegrad`` command; `stablegrad.cli` puts them together."""
