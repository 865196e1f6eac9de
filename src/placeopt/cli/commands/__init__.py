"""The commands of ``placeopt``, one function each."""
