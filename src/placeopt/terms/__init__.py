"""What is good (costs) and what is allowed (rules): one file each, stated once, used by every way to work."""
