"""Logs before and after it configures its logging, from a thread, and things that are hard to encode."""

import logging
import sys
import threading

import torch

logging.getLogger("early").warning("before any configuration")
if "configured" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("train")
log.debug("dropped by the program's own level")
log.info("epoch %d", 0)
log.error("odd: w\u00f6rld \x1b \udc80 \n end")
log.error("wrong arguments %d", "x")
thread = threading.Thread(target=lambda: log.warning("from a thread"))
thread.start()
thread.join()
torch.ones(2)
