"""The finite mixture of the paper's application (section 5, appendix B)."""
