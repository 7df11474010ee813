"""The whole pipeline: a request goes through research, design, planning, implementation and review to one commit."""
