"""Traces of others as scenarios, in the settings that figures of this folder or files of ``instances/`` have."""
