"""The user as whom tests run the program: nobody, who has no history.  Importing this is all there is to do, and
apart.py, forge.py, peers.py, processes.py and scripts.py do so for whoever imports them: a test that is run by hand
adds no lines to the history of whoever runs it."""
import os

os.environ.setdefault("SHOAL_HISTORY", "off")
