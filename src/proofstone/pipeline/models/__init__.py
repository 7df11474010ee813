"""The data of a run of the pipeline: its configuration, its report, and its evidence bundle."""
