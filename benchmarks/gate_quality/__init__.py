"""How well `proofstone check` tells right changes from wrong ones, measured on a set of cases.

    python -m benchmarks.gate_quality build FOLDER            # the set made here, from published packages
    python -m benchmarks.gate_quality run FOLDER --json FILE  # a check of each case
    python -m benchmarks.gate_quality page FILE               # the page of the documentation

`cases` says what a case is, `subjects` what the set is made of, and `build` how.
"""
