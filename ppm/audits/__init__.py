"""Audits: what a mechanism lets an adversary learn, exactly or from draws."""
