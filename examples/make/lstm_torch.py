#!/usr/bin/env python3
"""examples/lstm_torch: a two-layer LSTM with a linear head (PyTorch, through torch.export)."""

import os
import re
import sys

import torch

EXAMPLES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(EXAMPLES), "scripts"))

# Source positions in the module are relative to the repository, and to where packages are installed.
os.environ["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"] = "^.*/site-packages/|" + re.escape(os.path.dirname(EXAMPLES) + os.sep)

import export_torch  # noqa: E402  found through the path above


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(40, 16)
        self.lstm = torch.nn.LSTM(16, 32, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(32, 12)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states)


torch.manual_seed(5)
arguments = (torch.randint(0, 40, (4, 10)),)
program = torch.export.export(Tagger().eval(), arguments)
export_torch.export(program, arguments, os.path.join(EXAMPLES, "lstm_torch"))
