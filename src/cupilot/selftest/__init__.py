"""Attacks the evaluator: kernels that gain by cheating, each mounted for real beside an honest twin."""
