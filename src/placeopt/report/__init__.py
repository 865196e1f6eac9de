"""Reports: ``text`` for terminals, ``html`` for figures and one offline file. Nothing here reads, solves or prints."""
