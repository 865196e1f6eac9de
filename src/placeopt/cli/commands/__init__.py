"""The commands of ``placeopt``, one file each."""
