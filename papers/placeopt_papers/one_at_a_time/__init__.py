"""Jobs one at a time, none leaving and none tried twice: FGD's protocol, on its authors' orders of openb."""
