"""Files: instances and plans as JSON, and what other programs write. Import the module you need; this one is empty."""
