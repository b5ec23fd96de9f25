"""Records the operators of an unmodified PyTorch program with LTTng, and says where its time went.

Data flows one way: ``cli`` (options) → ``settings`` → ``recording`` (``torch_locate``, ``session``, ``launcher``) →
``traces`` (a directory on disk) → ``analyses``.
"""

from typing import Final

VERSION: Final = "0.1.0"
