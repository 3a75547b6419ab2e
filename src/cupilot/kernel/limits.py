"""What bounds a kernel file and its launch program: generous for honest kernels, done in a moment."""

from __future__ import annotations

# The text
MAX_FILE_CHARS = 1 << 18
MAX_SECTION_TOKENS = 20_000
MAX_STATEMENT_TOKENS = 800
MAX_BRACKET_DEPTH = 12
MAX_EXPRESSION_DEPTH = 40
MAX_BLOCK_DEPTH = 8
MAX_BRANCHES = 64  # of one if

# Tunables
MAX_TUNABLES = 16
MAX_VALUES = 64
MAX_TUNABLE_VALUE = 2**31 - 1
MAX_SEARCH_STEPS = 300_000  # expression nodes looked at while searching for valid points

# The launch program as it runs
MAX_INTEGER = 2**63 - 1
MAX_PROGRAM_STEPS = 300_000  # statements and expression nodes
MAX_STEPS_IN_PLAN = 1024
MAX_EXTENT = 2**31 - 1  # of one grid dimension, and of all blocks of a launch together
MAX_RANK = 8
MAX_ARGUMENTS = 128
MAX_SCRATCH_BYTES = 2 << 30
MAX_SCRATCH_TENSORS = 64
